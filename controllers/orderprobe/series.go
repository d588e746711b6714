package orderprobe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/robfig/cron/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/controllers/objects"
)

// Reasons of the conditions of a series.
const (
	reasonScheduled       = "Scheduled"
	reasonRunning         = "RunUnderWay"
	reasonScheduleInvalid = "ScheduleInvalid"
	reasonLate            = "RunLeftOut"
)

// lateness is how long after its time a run may still begin: the operator may have been away.
const lateness = 10 * time.Minute

// series carries out an OrderProbe with a schedule: it begins the run that is due, deletes the oldest ones, and judges.
func (r *Reconciler) series(ctx context.Context, probe *api.OrderProbe) (ctrl.Result, error) {
	var list api.OrderProbeList
	if err := r.Client.List(ctx, &list, client.InNamespace(probe.Namespace), client.MatchingLabels{api.LabelSeries: probe.Name}); err != nil {
		return ctrl.Result{}, err
	}
	members := slices.DeleteFunc(list.Items, func(m api.OrderProbe) bool { return !metav1.IsControlledBy(&m, probe) || m.DeletionTimestamp != nil })
	slices.SortFunc(members, func(a, b api.OrderProbe) int { // the latest first
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(b.Name, a.Name))
	})
	before, now := probe.DeepCopy(), r.Clock.Now()
	s := planSeries(probe, members, now)
	if s.begin != "" {
		run := member(probe, s.begin)
		if _, err := r.applier().Apply(ctx, probe, run); err != nil {
			return ctrl.Result{}, err
		}
	}
	for _, name := range s.remove {
		run := &api.OrderProbe{ObjectMeta: metav1.ObjectMeta{Namespace: probe.Namespace, Name: name}}
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, run, client.PropagationPolicy(metav1.DeletePropagationBackground))); err != nil {
			return ctrl.Result{}, err
		}
	}
	members = slices.DeleteFunc(members, func(m api.OrderProbe) bool { return slices.Contains(s.remove, m.Name) })
	s.status(probe, members, now)
	if err := r.writeStatus(ctx, before, probe); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return ctrl.Result{RequeueAfter: conflictRetry}, nil
		}
		return ctrl.Result{}, err
	}
	recordSeries(probe)
	if s.next.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: max(time.Second, s.next.Sub(now))}, nil
}

// step is what a series does now.
type step struct {
	begin   string    // name of the run to begin
	remove  []string  // names of runs that ended long ago
	last    time.Time // the time of the last run that was begun or left out
	next    time.Time
	leftOut string // why the run that was due is left out
	wrong   error  // of the schedule
}

// planSeries decides what a series does. members are its runs, the latest first.
func planSeries(probe *api.OrderProbe, members []api.OrderProbe, now time.Time) (s step) {
	schedule, err := parseSchedule(probe.Spec.Schedule)
	if err != nil {
		s.wrong = err
		return s
	}
	from := probe.CreationTimestamp.Time
	if t := probe.Status.LastTime; t != nil {
		from, s.last = t.Time, t.Time
	}
	running := slices.IndexFunc(members, func(m api.OrderProbe) bool { return !done(&m) })
	if due, ok := latestDue(schedule, from, now); ok {
		s.last = due
		switch {
		case running >= 0:
			s.leftOut = fmt.Sprintf("the run of %s is left out: %s has not ended", due.UTC().Format(time.RFC3339), members[running].Name)
		case now.Sub(due) > lateness:
			s.leftOut = fmt.Sprintf("the run of %s is left out: the operator was away until %v after it", due.UTC().Format(time.RFC3339), now.Sub(due).Round(time.Second))
		default:
			s.begin = probe.Name + "-" + strconv.FormatInt(due.Unix()/60, 36)
		}
	}
	s.next = schedule.Next(now)
	ended := 0
	for i := range members {
		if done(&members[i]) {
			if ended++; ended > int(probe.Spec.Schedule.Keep) {
				s.remove = append(s.remove, members[i].Name)
			}
		}
	}
	return s
}

// maxMissed bounds the search for the last time that was due, of an operator that was away for long.
const maxMissed = 10_000

// latestDue returns the last time after from that is not after now.
func latestDue(schedule cron.Schedule, from, now time.Time) (due time.Time, ok bool) {
	for range maxMissed {
		next := schedule.Next(from)
		if next.IsZero() || next.After(now) {
			return due, ok
		}
		due, from, ok = next, next, true
	}
	due = schedule.Next(now.Add(-lateness))
	return due, !due.After(now)
}

func parseSchedule(s *api.ProbeSchedule) (cron.Schedule, error) {
	zone := cmp.Or(s.TimeZone, "UTC")
	if _, err := time.LoadLocation(zone); err != nil {
		return nil, fmt.Errorf("spec.schedule.timeZone %q: %w; write it as UTC or Europe/Zurich", zone, err)
	}
	schedule, err := cron.ParseStandard("CRON_TZ=" + zone + " " + s.Cron)
	if err != nil {
		return nil, fmt.Errorf("spec.schedule.cron %q: %w; allowed: minute, hour, day of the month, month, day of the week, such as 0 3 * * 1-5", s.Cron, err)
	}
	return schedule, nil
}

// member is a run of a series.
func member(probe *api.OrderProbe, name string) *api.OrderProbe {
	l := objects.Labels(objects.Probe, name)
	l[api.LabelSeries] = probe.Name
	run := &api.OrderProbe{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: probe.Namespace, Labels: l}, Spec: *probe.Spec.DeepCopy()}
	run.Spec.Schedule = nil
	return run
}

// status writes down what there is to know of a series.
func (s *step) status(probe *api.OrderProbe, members []api.OrderProbe, now time.Time) {
	st := &probe.Status
	st.Runs = nil
	for i := range members {
		m := &members[i]
		if done(m) {
			st.Runs = append(st.Runs, api.ProbeRun{Name: m.Name, StartTime: m.Status.StartTime, Verdict: m.Status.Verdict, Mean: m.Status.Mean, P99: m.Status.P99})
		}
	}
	st.Verdict, st.Mean, st.P99, st.VerdictReason = "", "", "", ""
	for i := range members {
		if done(&members[i]) {
			last := members[i].Status
			st.Verdict, st.Mean, st.P99, st.VerdictReason = last.Verdict, last.Mean, last.P99, last.VerdictReason
			break
		}
	}
	if !s.last.IsZero() {
		st.LastTime = &metav1.Time{Time: s.last}
	}
	st.NextTime = nil
	if !s.next.IsZero() {
		st.NextTime = &metav1.Time{Time: s.next}
	}
	s.conditions(probe, members, now)
}

func (s *step) conditions(probe *api.OrderProbe, members []api.OrderProbe, now time.Time) {
	running := metav1.Condition{Type: api.ConditionRunning, Status: metav1.ConditionFalse, Reason: reasonScheduled, Message: "the next run is due at " + s.next.UTC().Format(time.RFC3339)}
	failed := metav1.Condition{Type: api.ConditionFailed, Status: metav1.ConditionFalse, Reason: reasonScheduled, Message: "the schedule is valid"}
	if i := slices.IndexFunc(members, func(m api.OrderProbe) bool { return !done(&m) }); i >= 0 || s.begin != "" {
		name := s.begin
		if i >= 0 {
			name = members[i].Name
		}
		running.Status, running.Reason, running.Message = metav1.ConditionTrue, reasonRunning, "OrderProbe "+name+" is under way"
	}
	if s.leftOut != "" {
		running.Reason, running.Message = reasonLate, s.leftOut
	}
	if s.wrong != nil {
		running.Reason, running.Message = reasonScheduleInvalid, s.wrong.Error()
		failed.Status, failed.Reason, failed.Message = metav1.ConditionTrue, reasonScheduleInvalid, s.wrong.Error()
	}
	for _, c := range []metav1.Condition{running, failed, regressed(members)} {
		c.Message = messages.Cut(c.Message, messages.MaxCondition)
		c.ObservedGeneration, c.LastTransitionTime = probe.Generation, metav1.NewTime(now)
		meta.SetStatusCondition(&probe.Status.Conditions, c)
	}
	probe.Status.ObservedGeneration = probe.Generation
}
