package runner

import (
	"math"
	"time"

	"github.com/ordergrid/ordergrid/probe/flow"
	"github.com/ordergrid/ordergrid/probe/load"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// fanoWindows are those of the record that the bursts are fitted to.
var fanoWindows = [...]time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second}

// burstWindow is the length of windows for detecting bursts.
const burstWindow = 10 * time.Millisecond

// offered describes the flow of a step, from its records.
func offered(plan scenario.Plan, s scenario.Step, start int64, sh *share) *report.Offered {
	begin := start + int64(plan.WarmupTime())
	end := begin + int64(plan.MeasureTime())
	var created, intended [len(fanoWindows)]flow.Fano
	for i, w := range fanoWindows {
		created[i], intended[i] = flow.NewFano(begin, w), flow.NewFano(begin, w)
	}
	out := &report.Offered{}
	orders := sh.orders[:sh.outcome.Created]
	for i := range orders {
		at, t1 := start+sh.schedule.Offset(int64(i)), orders[i].T1
		for w := range fanoWindows {
			if t1 < end {
				created[w].Add(t1)
			}
			intended[w].Add(at)
		}
		if at >= begin && sh.messages != nil {
			countKind(out, sh.messages.Kind(int64(i)))
		}
	}
	for i, w := range fanoWindows {
		created[i].Close(end)
		intended[i].Close(end)
		c, ok := created[i].Value()
		v, _ := intended[i].Value()
		if ok {
			out.Fano = append(out.Fano, report.FanoFactor{WindowMs: w.Milliseconds(), Intended: round2(v), Created: round2(c)})
		}
	}
	out.PeakRate = float64(intended[0].Peak()) / burstWindow.Seconds()
	out.LateInBursts = lateInBursts(sh, start, begin, end)
	if s.Arrival == flow.Day {
		out.PeakMinute = peakMinute(plan, sh, start, begin)
	}
	return out
}

func countKind(out *report.Offered, k flow.Kind) {
	switch k {
	case flow.Cancel:
		out.Cancelled++
	case flow.Replace:
		out.Replaced++
	default:
		out.New++
	}
}

// lateInBursts counts orders created more than 1 ms late in windows with more
// than twice the mean.
func lateInBursts(sh *share, start, begin, end int64) (late int64) {
	n := sh.outcome.Created
	first := sh.schedule.Orders(begin - start)
	mean := float64(sh.schedule.Orders(end-start)-first) * float64(burstWindow) / float64(end-begin)
	for i := first; i < n; {
		window := begin + (start+sh.schedule.Offset(i)-begin)/int64(burstWindow)*int64(burstWindow)
		next := min(n, max(i+1, sh.schedule.Orders(window+int64(burstWindow)-start)))
		if float64(next-i) > 2*mean {
			for k := i; k < next; k++ {
				if sh.orders[k].T1-start-sh.schedule.Offset(k) > int64(time.Millisecond) {
					late++
				}
			}
		}
		i = next
	}
	return late
}

// peakMinute is the latencies of the busiest minute of the day alone: its mean is what traders at
// the open and the close observe.
func peakMinute(plan scenario.Plan, sh *share, start, begin int64) *report.PeakMinute {
	from, to := flow.PeakMinute(int64(plan.MeasureTime()))
	p := &report.PeakMinute{FromMs: milli(from), LengthMs: milli(to - from)}
	orders := sh.orders[:sh.outcome.Created]
	for i := sh.schedule.Orders(begin + from - start); i < int64(len(orders)) && start+sh.schedule.Offset(i) < begin+to; i++ {
		p.Orders++
		if o := &orders[i]; o.Fate == load.Acked {
			p.CreateToEnd.Record(o.T3 - o.T1)
		}
	}
	return p
}

func round2(v float64) float64 { return math.Round(v*100) / 100 }
