package executor

import (
	"context"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
)

// run is a fault's whole life.
func (s *Server) run(hands Hands, e *entry) {
	job := e.job()
	ctx, cancel := context.WithDeadline(s.ctx, earlier(job.Deadline, time.Now().Add(injectWithin)))
	message, err := hands.Inject(ctx, job)
	cancel()
	if err != nil {
		s.say("%s, %s: %v", job.ID, job.Fault.Type, err)
		s.end(hands, e, job, executor.Failed, err.Error())
		return
	}
	now := time.Now().UTC()
	s.keep(e, func(e *entry) {
		e.Status.State, e.Status.Message, e.Status.Injected, e.Notes = executor.Injected, message, &now, job.Notes
	})
	s.say("%s, %s, is injected until %s at the latest: %s", job.ID, job.Fault.Type, job.Deadline.Local().Format(time.TimeOnly), message)
	s.hold(hands, e, job)
}

// resume takes up a fault of an earlier process.
func (s *Server) resume(e *entry) {
	hands, _, err := s.handsFor(s.ctx, e.Fault.Type)
	for err != nil { // the cluster cannot be looked at: the fault is not forgotten for that
		s.keep(e, func(e *entry) { e.Status.Message = "cannot be taken up yet: " + err.Error() })
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(retryAfter):
		}
		hands, _, err = s.handsFor(s.ctx, e.Fault.Type)
	}
	job := e.job()
	switch e.Status.State {
	case executor.Injecting:
		// Whether it got as far as doing harm is not known.
		s.end(hands, e, job, executor.Failed, "the executor was restarted while it injected this")
	case executor.Injected:
		if err := hands.Adopt(s.ctx, job); err != nil {
			s.end(hands, e, job, executor.Recovered, "it could not be taken up after the executor's restart: "+err.Error())
			return
		}
		s.hold(hands, e, job)
	default:
		s.end(hands, e, job, executor.Recovered, e.Status.Message)
	}
}

// hold watches a fault until its end is asked for or due.
func (s *Server) hold(hands Hands, e *entry, job *Job) {
	due := time.NewTimer(time.Until(job.Deadline))
	defer due.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		s.look(hands, e, job)
		select {
		case <-s.ctx.Done():
			return // the next process takes it up
		case <-e.unwanted:
			s.end(hands, e, job, executor.Recovered, "taken back as asked")
			return
		case <-due.C:
			s.end(hands, e, job, executor.Recovered, "taken back at its deadline")
			return
		case <-look.C:
		}
	}
}

// look brings a fault's witness up to date. What was seen stays seen.
func (s *Server) look(hands Hands, e *entry, job *Job) {
	w, err := hands.Look(s.ctx, job)
	if err != nil {
		w = executor.Witness{Message: "the witness cannot be asked: " + err.Error()}
	}
	s.keep(e, func(e *entry) {
		if e.Status.Witness.Seen && !w.Seen {
			return
		}
		e.Status.Witness = w
	})
}

// end reverts a fault, until that has worked.
func (s *Server) end(hands Hands, e *entry, job *Job, final executor.State, message string) {
	if final == executor.Recovered {
		s.look(hands, e, job)
	}
	// Injecting stays: a process that starts now must not call it injected.
	if final == executor.Recovered {
		s.keep(e, func(e *entry) { e.Status.State = executor.Recovering })
	}
	for {
		ctx, cancel := context.WithTimeout(s.ctx, recoverWithin)
		err := hands.Recover(ctx, job)
		cancel()
		if err == nil {
			break
		}
		s.say("%s, %s, cannot be taken back yet: %v", job.ID, job.Fault.Type, err)
		s.keep(e, func(e *entry) { e.Status.Message = fmt.Sprintf("cannot be taken back yet: %v", err) })
		select {
		case <-s.ctx.Done():
			return
		case <-time.After(retryAfter):
		}
	}
	now := time.Now().UTC()
	s.keep(e, func(e *entry) {
		e.Status.State, e.Status.Message, e.Status.Recovered, e.Notes = final, message, &now, job.Notes
	})
	close(e.over)
	s.say("%s, %s, is %s: %s", job.ID, job.Fault.Type, final, message)
}

// keep changes a fault. A failure to write it down is reported, and does not
// keep it from being taken back.
func (s *Server) keep(e *entry, edit func(*entry)) {
	if err := s.book.change(e, edit); err != nil {
		s.say("%s: %v", e.Status.ID, err)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
