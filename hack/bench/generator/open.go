package generator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

// open is an open loop: orders are created on a schedule whatever the system
// does, and latency counts from the time the schedule intended too.
func (r *run) open() error {
	p := &load.Probe{Name: "A", ID: fixorder.ID{Run: r.id, Probe: 1}, Version: fixorder.FIX42}
	for n, c := range r.conns {
		s := &submitter{conn: c}
		if r.Size != fixorder.Size || r.Shape.TwoSided {
			var err error
			if s.orders, err = r.newOrders(2 + n); err != nil {
				return err
			}
		}
		p.Threads = append(p.Threads, s)
	}
	schedule, err := load.NewSteady(r.Shape.Rate, 0)
	if err != nil {
		return err
	}
	warm := schedule.Orders(int64(r.Warmup))
	n := schedule.Orders(int64(r.Duration))
	room, err := load.NewOrders(max(warm, n, 1))
	if err != nil {
		return err
	}
	defer room.Close() //nolint:errcheck // the process ends soon
	step := load.Step{Schedule: schedule, DrainLimit: answerLimit}
	if warm > 0 {
		step.Start = clock.Now() + int64(lead)
		if _, err := p.Run(context.Background(), step, room.First(warm)); err != nil {
			return err
		}
	}
	a, err := take(r.PIDs)
	if err != nil {
		return err
	}
	orders := room.First(n)
	step.Start, step.First = clock.Now()+int64(lead), warm
	out, err := p.Run(context.Background(), step, orders)
	if err != nil {
		return err
	}
	b, err := take(r.PIDs)
	if err != nil {
		return err
	}
	r.use(a, b)
	r.r.Elapsed = time.Duration(out.Ended - step.Start)
	r.count(orders[:out.Created], schedule, step.Start)
	if r.Series {
		r.r.Began = clock.Wall(step.Start)
		r.r.Series = series(orders[:out.Created], schedule, step.Start)
	}
	r.r.Failed = int64(len(orders)) - r.r.Orders
	for i := range orders {
		if orders[i].Fate == load.Unsent {
			r.r.Unsent++
		}
	}
	if err := errors.Join(out.Errors...); err != nil {
		r.r.Error = err.Error()
	} else if r.r.Failed > 0 {
		r.r.Error = fmt.Sprintf("%d were due and not sent, which is this machine's fault", r.r.Unsent)
	}
	return nil
}

// lead is the time between the decision to start and the first order.
const lead = 5 * time.Millisecond

func (r *run) count(orders []load.Order, schedule load.Schedule, start int64) {
	for i := range orders {
		o := &orders[i]
		if o.Fate != load.Acked {
			continue
		}
		intended := start + schedule.Offset(int64(i))
		r.r.Orders++
		r.r.SendToEnd.Record(o.T3 - o.T2)
		r.r.CreateToEnd.Record(o.T3 - intended)
		r.r.Lag.Record(o.T1 - intended)
	}
}

// series is count by the second, with the gaps between answers.
func series(orders []load.Order, schedule load.Schedule, start int64) (out []Second) {
	second := func(ns int64) int { return int(max(0, ns-start) / int64(time.Second)) }
	var ends []int64
	for i := range orders {
		if o := &orders[i]; o.Fate == load.Acked {
			intended := start + schedule.Offset(int64(i))
			for len(out) <= second(intended) {
				out = append(out, Second{})
			}
			s := &out[second(intended)]
			s.Orders++
			s.CreateToEnd.Record(o.T3 - intended)
			ends = append(ends, o.T3)
		}
	}
	slices.Sort(ends)
	for i := 1; i < len(ends); i++ {
		s := &out[min(second(ends[i]), len(out)-1)] // those that came late end in the last second
		s.Gap = max(s.Gap, time.Duration(ends[i]-ends[i-1]))
	}
	return out
}

// submitter is a connection as probe/load wants it.
type submitter struct {
	conn   Conn
	orders *orders // those that are not the published one
}

func (s *submitter) Submit(_ context.Context, fix []byte) (load.Receipt, error) {
	if s.orders != nil {
		fix = s.orders.next()
	}
	return load.Receipt{}, s.conn.Submit(fix)
}

// Fate implements load.Submitter. No load here survives a failure, so it need
// not be told which.
func (s *submitter) Fate(error) load.Fate { return load.Unknown }
