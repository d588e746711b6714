package system

import (
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

// What parts of a scenario take at the most on two cores, for a plan of time; they judge nothing.
const (
	gridTime  = 5 * time.Second // to start a grid and to end it
	rowsASec  = 20_000          // loaded, sent or read back
	roadTrips = 4 * time.Second // the orders of one road, one after the other
	// flashTime is of all five flows.
	flashTime = 30 * time.Second
	// askTime is of all questions of bar-query, twice.
	askTime = 2 * time.Second
	// connectTime is of a client with a hundred subscriptions.
	connectTime = 5 * time.Millisecond
)

// Length is about how long a scenario takes.
func Length(d *published.Data, name string, mode scenario.Mode) (time.Duration, error) {
	s, _ := d.Scenario(name)
	rows := func(n int) time.Duration { return time.Duration(n) * time.Second / rowsASec }
	switch name {
	case published.DurabilityScenario:
		p, err := durabilityOf(s, mode)
		return time.Duration(p.Repeats+1) * (gridTime + time.Duration(p.TotalS)*time.Second*3/2), err
	case published.LoadScenario:
		p, err := loadsOf(s, mode)
		if err != nil {
			return 0, err
		}
		total := 2 * gridTime // the control
		for _, n := range append(p.Rows, p.Rows[0]) {
			total += 2 * (gridTime + 2*rows(n))
		}
		return total, nil
	case published.WANScenario:
		p, err := wanOf(s, mode)
		each := gridTime + rows(2*p.Rows*p.Caches)
		return time.Duration(len(p.Batches)*len(p.DelayMs)+2)*each + time.Duration(len(p.OneWayMs))*each + time.Duration(len(p.OneWayMs)+len(p.Sizes))*roadTrips, err
	case published.FanoutScenario, published.FilterScenario, published.LargeScenario:
		p, err := fanoutOf(d, s, mode)
		return streamLength(s.Name, p), err
	case published.QueryScenario, published.TypesScenario, published.ClientScenario:
		p, err := cachesOf(d, s, mode)
		return 2*gridTime + rows(p.Rows*p.Caches) + time.Duration(p.Loops)*askTime, err
	case published.FailoverScenario:
		p, err := failoverOf(d, s, mode)
		return time.Duration(len(failures)+1)*(2*gridTime+rows(2*p.Rows)) + time.Duration(len(failures)*p.TotalS)*time.Second, err
	case published.ProjectionScenario:
		p, err := projectionOf(s, mode)
		return 2*gridTime + 2*rows(p.Rows) + projectionLoops*askTime, err
	case published.TopologiesScenario:
		list, n, err := topologiesOf(s, mode)
		return time.Duration(len(list))*(3*gridTime+rows(4*n)) + gridTime, err
	case published.ThinScenario, published.SkiScenario, published.ReadScenario:
		p, err := usersOf(s, mode)
		connect := time.Duration(0)
		for _, n := range p.Users {
			connect += time.Duration(n) * connectTime
		}
		return 4*gridTime + connect + time.Duration((2*len(p.Users)+4)*(p.MeasureS+1))*time.Second, err
	case published.AsyncScenario:
		p, lasts, err := workersOf(s, mode)
		return 2*gridTime + time.Duration(len(p.Workers)+3)*lasts, err
	case published.ExchangeScenario:
		list, lasts, err := exchangeOf(d, s, mode)
		total := time.Duration(0)
		for _, x := range list {
			total += 2*gridTime + time.Duration(tradeRounds+len(servedShares))*(lasts+rows(x.Users)/4)
		}
		return total, err
	case published.FlashScenario:
		return flashTime, nil
	case published.AuctionScenario:
		p, total := auctionsOf(mode), time.Duration(0)
		for _, n := range p.orders {
			total += gridTime + 2*rows(n*p.rounds)
		}
		return total, nil
	case published.SessionsScenario:
		return sessionsOf(mode).length(), nil
	case published.UpdateScenario, published.DropScenario:
		p, err := cachesOf(d, s, mode)
		return 2*gridTime + rows(3*p.Rows), err
	}
	return 0, nil
}

// streamLength is that of steps of streams: connecting, the step, what comes late.
func streamLength(name string, p published.Fanout) time.Duration {
	counts := append(slices.Clone(p.Clients), p.ManyClients...)
	grids := 1
	switch name {
	case published.FanoutScenario:
		counts, grids = append(append(counts, counts...), p.Clients[0]), 3
	case published.FilterScenario:
		counts = slices.Repeat(counts, len(p.Discard))
	}
	total := time.Duration(grids)*2*gridTime + 3*gridTime // the control
	for _, n := range counts {
		total += time.Duration(p.MeasureS+1)*time.Second + time.Duration(n)*connectTime
	}
	return total
}
