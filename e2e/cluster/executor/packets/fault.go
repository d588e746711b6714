package packets

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
	"github.com/ordergrid/ordergrid/e2e/cluster/executor/nfqueue"
)

// Spec is a fault of one network namespace.
type Spec struct {
	ID         string
	Type       string // one of executor's network faults
	Parameters executor.Parameters
	Peers      []netip.Addr // IPv4
	// Queue is a number no other fault of the namespace has.
	Queue uint16
	// Deadline is when the fault ends by itself.
	Deadline time.Time
}

// Fault is one that is in force.
type Fault struct {
	spec      Spec
	namespace Namespace
	queue     *nfqueue.Queue
	verdict   verdict
	tally     tally
	reader    sync.WaitGroup
	failure   atomic.Pointer[error] // why no packets are read any more
	close     func() error
	release   sync.Once
	released  error
}

// tally counts what became of queued packets.
type tally struct {
	held, dropped, duplicated, changed, failed atomic.Int64
}

// verdict decides about packets one after another. stop lets go of all that
// are held.
type verdict interface {
	take(nfqueue.Packet)
	stop()
}

// Start brings a fault into force; it is when Start returns.
func Start(ctx context.Context, n Namespace, spec Spec) (*Fault, error) {
	f := &Fault{spec: spec, namespace: n, close: func() error { return nil }}
	need := nfqueue.NeedNothing
	if spec.Type == executor.NetworkDuplicate || spec.Type == executor.NetworkCorrupt {
		need = nfqueue.NeedContent
	}
	namespace, err := os.Open(n.path())
	if err != nil {
		return nil, fmt.Errorf("the pod's network: %w", err)
	}
	defer namespace.Close()
	if f.queue, err = nfqueue.Open(namespace, spec.Queue, need); err != nil {
		return nil, err
	}
	if err := f.decide(); err != nil {
		return nil, errors.Join(err, f.queue.Close())
	}
	f.reader.Go(f.read)
	if err := spec.rules().install(ctx, n); err != nil {
		return nil, errors.Join(err, f.Stop(ctx))
	}
	return f, nil
}

func (f *Fault) decide() error {
	switch f.spec.Type {
	case executor.NetworkDelay:
		h := newHolder(f.queue, &f.tally, f.spec.Parameters)
		f.verdict, f.close = h, h.close
	case executor.NetworkLoss:
		f.verdict = &dropper{f.queue, &f.tally}
	case executor.NetworkCorrupt:
		f.verdict = &damager{f.queue, &f.tally}
	case executor.NetworkDuplicate:
		d, err := newDoubler(f.queue, &f.tally, f.namespace, f.spec.Parameters.Duplicate)
		if err != nil {
			return err
		}
		f.verdict, f.close = d, d.close
	default:
		return fmt.Errorf("%s is no fault of packets", f.spec.Type)
	}
	return nil
}

// rules of the fault. Packets that are lost or damaged are chosen by the
// kernel and the others pass it by; where order counts, all go to the queue.
func (s *Spec) rules() *Rules {
	r := &Rules{ID: s.ID, Queue: s.Queue, Interface: s.Parameters.Interface, Peers: s.Peers, Percent: 100, Until: s.Deadline.Add(time.Second)}
	r.To, r.From = directions(s.Parameters.Direction)
	switch s.Type {
	case executor.NetworkLoss:
		r.Percent = s.Parameters.Loss
		r.First = true // a packet another fault has queued does not come back to the rules
	case executor.NetworkCorrupt:
		r.Percent = s.Parameters.Corrupt
	}
	return r
}

func (f *Fault) read() {
	for {
		if err := f.queue.Receive(f.verdict.take); err != nil {
			if !errors.Is(err, nfqueue.ErrClosed) {
				f.failure.Store(&err)
			}
			return
		}
	}
}

// Stop reverts the fault. Held packets are released at once, in order.
// It may be repeated, as after an error.
func (f *Fault) Stop(ctx context.Context) error {
	err := Remove(ctx, f.namespace, f.spec.ID)
	return errors.Join(err, f.Release())
}

// Release releases the packets but leaves the rules, which then let all pass:
// for the end of this process, not of the fault.
func (f *Fault) Release() error {
	f.release.Do(func() {
		f.verdict.stop()
		f.drain()
		err := f.queue.Close()
		f.reader.Wait()
		f.released = errors.Join(err, f.close())
	})
	return f.released
}

// drain waits until no packet waits for a verdict: closing the queue would
// drop it. Where rules still lead packets here there is always one, so it does
// not wait indefinitely.
func (f *Fault) drain() {
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		s, err := nfqueue.ReadStatistics(f.namespace.PID, f.spec.Queue)
		if err != nil || s.Waiting == 0 {
			return // or the namespace is gone, with its packets
		}
	}
}

// Counters are what happened to packets so far.
func (f *Fault) Counters(ctx context.Context) (map[string]int64, error) {
	if failure := f.failure.Load(); failure != nil {
		return nil, *failure
	}
	matched, queued, err := count(ctx, f.namespace, f.spec.ID)
	if err != nil {
		return nil, err
	}
	all := map[string]int64{"matched": matched, "queued": queued, "failed": f.tally.failed.Load()}
	if statistics, err := nfqueue.ReadStatistics(f.namespace.PID, f.spec.Queue); err == nil {
		all["overflow"] = statistics.Overflow
	}
	switch f.spec.Type {
	case executor.NetworkDelay:
		all[Held] = f.tally.held.Load()
	case executor.NetworkLoss:
		all[Dropped] = f.tally.dropped.Load()
	case executor.NetworkDuplicate:
		all[Duplicated] = f.tally.duplicated.Load()
	case executor.NetworkCorrupt:
		all[Changed] = f.tally.changed.Load()
	}
	return all, nil
}

// The counters that show a fault to have hit, one per type.
const (
	Held       = "held"
	Dropped    = "dropped"
	Duplicated = "duplicated"
	Changed    = "changed"
)

// HitCounter names the counter of a type that shows a fault to have hit.
func HitCounter(kind string) string {
	return map[string]string{
		executor.NetworkDelay: Held, executor.NetworkLoss: Dropped,
		executor.NetworkDuplicate: Duplicated, executor.NetworkCorrupt: Changed,
	}[kind]
}
