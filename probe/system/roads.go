package system

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

const (
	// london is one way, in ms, of the table beside the published one.
	london = 35
	// maxLagMs is how much longer than the road an order may take to the other site at the median. The p99 of so few is
	// that of the machine.
	maxLagMs = 25
	// lagOrders are sent one after the other over each road.
	lagOrders = 100
)

// wanOf returns the parameters of a mode.
func wanOf(s published.Scenario, mode scenario.Mode) (published.WAN, error) {
	return ofMode(mode, s.WAN, func(p *published.WAN) {
		*p = published.WAN{Batches: []int{10, 1000}, DelayMs: []int{0}, OneWayMs: []float64{0, london}, Sizes: []int{256, 16384}, Rows: 5000, Caches: 1}
	})
}

// roads sends the log of a grid to an empty standby over a road, by batch and delay, and single orders over roads of rising
// length. The logs of both sites are compared entry by entry. The control is a link that is killed on its way.
func roads(ctx context.Context, d *published.Data, s published.Scenario, o Options, r *Report) (err error) {
	p, err := wanOf(s, o.Mode)
	if err != nil {
		return err
	}
	r.Columns = []string{"one way ms", "bytes", "batch", "delay ms", "sent", "received", "lost", "seconds", "orders/s", "published/s", "lag p50 ms", "lag p99 ms"}
	r.Differences = append(r.Differences, "one grid of one node and one partition in place of 18 caches, orders of some 150 bytes; the road is a TCP proxy on this machine",
		"connections are not placed, and the penalty of a writer that waits for the other site does not occur: the link follows the log. go test ./gateway/link -bench Lag measures an order beside a link")
	rows := p.Rows * p.Caches
	source, err := o.site(ctx, rows, "--external-sink", "link")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Stop()) }()
	file := filepath.Join(o.Dir, "wan.csv")
	if err := writeRows(file, "csv", rows, 0); err != nil {
		return err
	}
	if n, _, err := o.load(ctx, source, file); err != nil || n.accepted != int64(rows) {
		return errors.Join(err, fmt.Errorf("the source took %+v of %d rows", n, rows))
	}
	var rates []float64
	for _, delay := range p.DelayMs {
		for _, batch := range p.Batches {
			rate, err := o.catchUp(ctx, r, d, source, rows, london, batch, delay)
			if err != nil {
				return err
			}
			rates = append(rates, rate)
		}
	}
	for _, ms := range p.OneWayMs {
		if err := o.lags(ctx, r, d, source, p, ms); err != nil {
			return err
		}
	}
	if least := slices.Min(rates); least < d.WANRate(1000, 0) {
		r.judge(Fail, "%.0f orders/s at the worst batch and delay, the published best is %.0f", least, d.WANRate(1000, 0))
	}
	return o.roadControl(ctx, r, source, rows)
}

// site starts a grid of one node and one partition.
func (o *Options) site(ctx context.Context, rows int, args ...string) (*devgrid.Grid, error) {
	return devgrid.Start(ctx, devgrid.Options{Program: o.GridNode, Shards: 1, Replicas: 1, MemoryMiB: 512 + int64(rows)>>10, Args: append([]string{"--partitions", "1"}, args...)})
}

// catchUp measures how fast an empty standby gets the log of the source.
func (o *Options) catchUp(ctx context.Context, r *Report, d *published.Data, source *devgrid.Grid, rows int, oneWay float64, batch, delay int) (rate float64, err error) {
	o.Say("a log of %d orders over %v ms, batch %d, delay %d ms", rows, oneWay, batch, delay)
	s, err := o.far(ctx, source, rows, oneWay, "--batch", strconv.Itoa(batch), "--delay", fmt.Sprintf("%dms", delay))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	end, err := lastOf(ctx, source)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := s.link.Start(); err != nil {
		return 0, err
	}
	if err := s.reach(ctx, end, 10*time.Minute); err != nil {
		return 0, err
	}
	took := time.Since(begun)
	sent, received, lost, err := missing(ctx, source, s, 10*time.Second)
	if err != nil {
		return 0, err
	}
	if lost > 0 || sent != received {
		r.judge(Wrong, "batch %d, delay %d ms: %d sent, %d received, %d entries lost or other ones", batch, delay, sent, received, lost)
	}
	was := "-"
	if v := d.WANRate(batch, delay); v > 0 {
		was = fmt.Sprintf("%.1f", v)
	}
	rate = float64(sent) / took.Seconds()
	r.row(oneWay, "-", batch, delay, sent, received, lost, fmt.Sprintf("%.2f", took.Seconds()), fmt.Sprintf("%.0f", rate), was, "-", "-")
	if v := d.WANRate(batch, delay); v > 0 {
		r.beside(report.Comparison{Table: "5.5", Row: fmt.Sprintf("delay %d ms, batch %d", delay, batch), Metric: "orders/s, the published unit is not stated", Published: v, At: fmt.Sprintf("%d ms one way", london)}, rate)
	}
	return rate, nil
}

func lastOf(ctx context.Context, g *devgrid.Grid) (uint64, error) {
	c, err := client.Dial(ctx, client.Config{Endpoints: g.Endpoints})
	if err != nil {
		return 0, err
	}
	defer c.Close() //nolint:errcheck // it never fails
	end, err := c.ReadLog(ctx, 0, "", 1<<62, nil)
	return end.CommitSeq, err
}

// lags measures how long single orders take to the other site, and over the longest road those of other sizes.
func (o *Options) lags(ctx context.Context, r *Report, d *published.Data, source *devgrid.Grid, p published.WAN, oneWay float64) (err error) {
	o.Say("%d orders, one after the other, over %v ms", lagOrders, oneWay)
	s, err := o.far(ctx, source, 2*p.Rows*p.Caches, oneWay)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	if err := s.link.Start(); err != nil {
		return err
	}
	end, err := lastOf(ctx, source)
	if err == nil {
		err = s.reach(ctx, end, 10*time.Minute)
	}
	if err != nil {
		return err
	}
	const id = "12345678"
	sizes := []int{len(sized(id, 0))}
	if oneWay == slices.Max(p.OneWayMs) {
		sizes = append(sizes, p.Sizes...)
	}
	for _, size := range sizes {
		if size > wire.DefaultMaxPayload {
			r.Differences = append(r.Differences, fmt.Sprintf("objects of %d bytes are no orders: a node takes messages of up to %d", size, wire.DefaultMaxPayload))
			continue
		}
		p50, p99, err := s.lag(ctx, source, size)
		if err != nil {
			return err
		}
		sent, received, lost, err := missing(ctx, source, s, 10*time.Second)
		if err != nil {
			return err
		}
		if lost > 0 || sent != received {
			r.judge(Wrong, "over %v ms: %d sent, %d received, %d entries lost or other ones", oneWay, sent, received, lost)
		}
		r.row(oneWay, size, "-", "-", sent, received, lost, "-", "-", "-", fmt.Sprintf("%.1f", p50), fmt.Sprintf("%.1f", p99))
		if p50-oneWay > maxLagMs {
			r.judge(Fail, "over %v ms an order of %d bytes takes %.1f ms at the median, allowed: %d more than the road", oneWay, size, p50, maxLagMs)
		}
		for fact, road := range map[string]float64{"bar.wan0": 0, "bar.wanldn": london} {
			if v, ok := d.FactNumber(fact); ok && road == oneWay && size == sizes[0] {
				r.figure(report.Comparison{Table: report.ProsePrefix + fact, Metric: "lag p50", Unit: "ms", At: fmt.Sprintf("%v ms one way", oneWay), Published: v}, p50)
			}
		}
	}
	return nil
}

// sized is an order of so many bytes, or the shortest one where that is longer. The bytes are in EncodedText (355): other
// texts are short.
func sized(id string, bytes int) []byte {
	of := func(text int) []byte {
		return newOrder(nil, id, "WAN", "SYM", 100, fmt.Sprintf("354=%d\x01355=%s\x01", text, strings.Repeat("x", text)))
	}
	text := bytes - len(of(1)) + 1
	if text < 1 {
		return newOrder(nil, id, "WAN", "SYM", 100, "")
	}
	for {
		o := of(text)
		if len(o) <= bytes || text == 1 {
			return o
		}
		text -= len(o) - bytes // the lengths have more digits
	}
}

// lag sends orders of a size, one after the other, and is how long they take to the other site from their acknowledgement
// here, in ms.
func (s *standby) lag(ctx context.Context, source *devgrid.Grid, size int) (p50, p99 float64, err error) {
	c, err := client.Dial(ctx, client.Config{Endpoints: source.Endpoints, RequestTimeout: time.Minute})
	if err != nil {
		return 0, 0, err
	}
	defer c.Close() //nolint:errcheck // it never fails
	var lags []float64
	for i := range lagOrders {
		receipt, err := c.Submit(ctx, sized(fmt.Sprintf("%08d", (time.Now().UnixNano()/1000+int64(i))%100_000_000), size))
		if err != nil {
			return 0, 0, err
		}
		acked := time.Now()
		if err := s.reach(ctx, receipt.Seq, time.Minute); err != nil {
			return 0, 0, err
		}
		lags = append(lags, float64(time.Since(acked))/float64(time.Millisecond))
	}
	p50 = median(lags)
	return p50, lags[len(lags)*99/100], nil
}

// roadControl kills a narrow link on its way: the comparison has to find what is missing.
func (o *Options) roadControl(ctx context.Context, r *Report, source *devgrid.Grid, rows int) (err error) {
	s, err := o.far(ctx, source, rows, 0, "--max-bandwidth", "262144", "--batch", "50")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	if err := s.link.Start(); err != nil {
		return err
	}
	if err := s.reach(ctx, 10, time.Minute); err != nil {
		return err
	}
	if err := s.link.Process.Kill(); err != nil {
		return err
	}
	if err := clock.Wait(ctx, 300*time.Millisecond); err != nil { // what was under way is stored
		return err
	}
	sent, received, lost, err := missing(ctx, source, s, 0)
	if err != nil {
		return err
	}
	r.Control = fmt.Sprintf("a link that was killed on its way: %d sent, %d received, %d entries are found missing", sent, received, lost)
	if lost == 0 || lost < sent-received {
		r.judge(Invalid, "the control lost nothing: the comparison is blind")
	}
	return nil
}
