package system

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

const (
	// fullCores is how busy the cores may be where latencies of two steps are compared.
	fullCores = 0.8
	// maxDiscardRatio is how often the mean without discarded messages that with them may be; published 1.19.
	maxDiscardRatio = 1.2
)

var streamColumns = []string{"step", "clients", "in/s", "discarded/s", "out/s", "Mbit/s", "of 1GE", "mean us", "p50 us", "p99 us", "p99.9 us", "stddev us", "max us",
	"spread", "expected", "received", "left out", "cores busy", "published mean us"}

// streamDifferences are those of all scenarios that stream.
func streamDifferences(r *Report, p published.Fanout) {
	r.Differences = append(r.Differences,
		"a client of the probe publishes messages over WebSocket to topics of clients, and a gateway streams them to WebSocket clients; no log has them. A latency is from when a message was due, which its payload says, to when a client reads it, of one clock",
		"topics are of 10 bytes, user. and five digits, in place of 5",
		"clients, publisher, gateway and an idle grid share this machine, in place of 12 hosts of subscribers and a line; Mbit/s are of the bytes that clients read, with frames")
	if p.FlushMs > 0 {
		r.Differences = append(r.Differences, fmt.Sprintf("a subscription has an interval of %d ms, which is part of the latency", p.FlushMs))
	}
}

// streamRow adds the row of a step, and judges what is the same for all.
func streamRow(r *Report, f flood, x *flooded, was float64) {
	mean, p50, p99, p999, deviation, most := x.stats()
	us := func(v float64) string { return fmt.Sprintf("%.0f", v) }
	share, _ := spread(x.lists)
	pub := "-"
	if was > 0 {
		pub = us(was)
	}
	r.row(f.name, f.clients, f.preset.Pub, us(x.discarded), us(x.egress), fmt.Sprintf("%.1f", x.mbits), fmt.Sprintf("%.0f %%", 100*x.mbits/gigabit), us(mean), us(p50), us(p99), us(p999), us(deviation), us(most),
		fmt.Sprintf("%.1f %%", 100*share), x.expected, x.received, x.told, fmt.Sprintf("%.0f %%", 100*x.busy), pub)
	where := fmt.Sprintf("%s, %d clients", f.name, f.clients)
	switch silent := x.missing - x.told; {
	case x.repeated > 0 || x.others > 0 || silent > 0:
		r.judge(Wrong, "%s: %d of %d messages missing (%d of them told as left out), %d twice, %d other ones", where, x.missing, x.expected, x.told, x.repeated, x.others)
	case x.told > 0:
		r.judge(Fail, "%s: %d messages left out for clients that were too slow, and told so; allowed: none", where, x.told)
	case x.expected == 0:
		r.judge(Invalid, "%s: nothing was to be delivered", where)
	}
	if x.late > maxLate {
		r.judge(Invalid, "%s: the p99 of how late messages were sent is %v, allowed: %v", where, x.late, maxLate)
	}
	if x.reader > maxReader {
		r.judge(Invalid, "%s: the thread of the clients used %.0f %% of its core, allowed: %.0f", where, 100*x.reader, 100*maxReader)
	}
}

// streamControl has one client pass a message over and another take one twice: both have to be found.
func (s *streams) streamControl(ctx context.Context, r *Report, preset published.Preset) error {
	was := s.p.MeasureS
	s.p.MeasureS = min(2, was)
	x, err := s.flood(ctx, flood{name: "control", preset: preset, clients: s.p.Clients[0]}, true)
	s.p.MeasureS = was
	if err != nil {
		return err
	}
	r.Control = fmt.Sprintf("one client passed a message over and another took one twice: of %d messages %d are found missing and %d repeated", x.expected, x.missing, x.repeated)
	if x.missing != 1+x.told || x.repeated != 1 || x.others != 0 {
		r.judge(Invalid, "the control is found as %d missing, %d repeated and %d other messages: the count is not to be believed", x.missing, x.repeated, x.others)
	}
	return nil
}

// fanouts streams both presets to rising numbers of clients.
func fanouts(ctx context.Context, d *published.Data, s published.Scenario, o Options, r *Report) error {
	p, err := fanoutOf(d, s, o.Mode)
	if err != nil {
		return err
	}
	r.Columns = streamColumns
	streamDifferences(r, p)
	exact, _, err := d.Fanout(s)
	if err != nil {
		return err
	}
	for _, one := range []struct {
		name   string
		preset published.Preset
		tables []string
	}{{"high", p.High, []string{"3-1"}}, {"very high", p.VeryHigh, []string{"3-3", "3-5"}}} {
		if err := o.curve(ctx, d, r, p, exact.Clients, one.name, one.preset, one.tables); err != nil {
			return err
		}
	}
	return o.committed(ctx, r, p)
}

// committed streams orders at the rates of the first preset, which two nodes commit before any client has them.
func (o *Options) committed(ctx context.Context, r *Report, p published.Fanout) (err error) {
	st, err := o.newStreams(ctx, p, p.High.Pub*p.MeasureS, p.Clients[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.end()) }()
	f := flood{name: "high, orders", preset: p.High, clients: p.Clients[0], orders: true}
	x, err := st.flood(ctx, f, false)
	if err != nil {
		return err
	}
	streamRow(r, f, x, 0)
	r.Differences = append(r.Differences, fmt.Sprintf("%q are orders of the grid, in place of messages of a client: two nodes commit each before it is streamed, with a mean of %.0f bytes of data; there is no published figure of that", f.name, x.payload))
	return nil
}

// curve runs one preset over the numbers of clients, on a grid of its own, and judges how the median grows.
func (o *Options) curve(ctx context.Context, d *published.Data, r *Report, p published.Fanout, clients []int, name string, preset published.Preset, tables []string) (err error) {
	most := slices.Max(p.Clients)
	st, err := o.newStreams(ctx, p, 0, most)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.end()) }()
	medians := map[int]float64{}
	lists := make([][]arrival, 0, p.Measured)
	for i, n := range p.Clients {
		f := flood{name: name, preset: preset, clients: n}
		x, err := st.flood(ctx, f, false)
		if err != nil {
			return err
		}
		was, _ := d.Cell("solace", tables[0], float64(n), "avg_us")
		streamRow(r, f, x, was.Value)
		mean, p50, _, _, _, _ := x.stats()
		medians[n] = p50
		for _, table := range tables {
			r.streamFigure(d, table, clients, i, f, "avg_us", mean)
		}
		if len(x.lists) == p.Measured { // of fewer clients than that a rank says little
			lists = joined(lists, x.lists)
		}
	}
	growth := medians[most] / max(1, medians[p.Clients[0]])
	for _, table := range tables {
		first, _ := d.Cell("solace", table, float64(clients[0]), "median_us")
		last, _ := d.Cell("solace", table, float64(clients[len(clients)-1]), "median_us")
		r.figure(report.Comparison{Table: table, Row: fmt.Sprintf("%d and %d clients", clients[0], clients[len(clients)-1]), Metric: "median of the most clients, by that of the fewest", Published: last.Value / max(1, first.Value), Derived: true,
			At: fmt.Sprintf("%d and %d clients", p.Clients[0], most)}, growth)
	}
	if growth > maxGrowth {
		r.judge(Fail, "%s: the median of %d clients is %.2f that of %d, allowed: %d", name, most, growth, p.Clients[0], maxGrowth)
	}
	if share, n := spread(lists); n >= minRanked && share > maxSpread {
		r.judge(Fail, "%s: mean ranks of %d clients that get the same %d messages spread by %.1f %%, allowed: %.0f", name, len(lists), n, 100*share, 100*maxSpread)
	}
	if r.Control != "" {
		return nil
	}
	return st.streamControl(ctx, r, preset)
}

// streamFigure puts a figure of the i-th step beside that column of the i-th published one. Other numbers of clients have no
// ratio.
func (r *Report) streamFigure(d *published.Data, table string, clients []int, i int, f flood, column string, here float64) {
	if i >= len(clients) {
		return
	}
	was, ok := d.Cell("solace", table, float64(clients[i]), column)
	if !ok {
		return
	}
	c := report.Comparison{Table: table, Row: fmt.Sprint(clients[i]), Metric: "latency, mean", Unit: "us", TotalRate: f.clients * f.preset.RateEach, Published: was.Value}
	if column == "egress_user_mbps" {
		c.Metric, c.Unit = "payloads", "Mbit/s"
	}
	if clients[i] != f.clients {
		c.At = fmt.Sprintf("%d clients", f.clients)
		r.beside(c, here)
		return
	}
	r.figure(c, here)
}

// joined puts the arrivals of two steps together, client by client; messages have numbers of their own in each.
func joined(a, b [][]arrival) [][]arrival {
	if len(a) == 0 {
		return slices.Clone(b)
	}
	for i := range a {
		a[i] = append(slices.Clip(a[i]), b[i]...)
	}
	return a
}

// filters adds messages that no client wants.
func filters(ctx context.Context, d *published.Data, s published.Scenario, o Options, r *Report) (err error) {
	p, err := fanoutOf(d, s, o.Mode)
	if err != nil {
		return err
	}
	r.Columns = streamColumns
	streamDifferences(r, p)
	r.Differences = append(r.Differences, "what is discarded is published by one more client, to a topic that no client wants; discarded/s is what the gateway took of it beside the others, not what was offered")
	st, err := o.newStreams(ctx, p, 0, p.Clients[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.end()) }()
	var steps []discardStep
	for _, discard := range p.Discard {
		f := flood{name: fmt.Sprintf("discard %d/s", discard), preset: p.VeryHigh, clients: p.Clients[0], discard: discard}
		x, err := st.flood(ctx, f, false)
		if err != nil {
			return err
		}
		was, ok := d.Cell("solace", "3-7", float64(discard), "avg_us")
		streamRow(r, f, x, was.Value)
		mean, _, _, _, _, _ := x.stats()
		steps = append(steps, discardStep{x.discarded, mean, x.busy})
		c := report.Comparison{Table: "3-7", Row: fmt.Sprint(discard), Metric: "latency, mean", Unit: "us", At: fmt.Sprintf("%d clients", f.clients), TotalRate: f.clients * f.preset.RateEach, Published: was.Value}
		if ok && o.Mode == scenario.Exact {
			r.figure(c, mean)
		} else if ok {
			r.beside(c, mean)
		}
	}
	first, _ := d.Cell("solace", "3-7", 0, "avg_us")
	last, _ := d.Cell("solace", "3-7", 3e6, "avg_us")
	most, end := slices.Max(p.Discard), steps[len(steps)-1]
	r.figure(report.Comparison{Table: "3-7", Row: "3000000 and 0", Metric: "mean with discarded messages, by that without", Published: last.Value / first.Value, Derived: true, At: fmt.Sprintf("%d/s offered, %.0f/s taken, and 0", most, end.taken)}, end.mean/max(1, steps[0].mean))
	r.judgeDiscards(steps)
	return st.streamControl(ctx, r, p.VeryHigh)
}

// discardStep is the result of a step: messages/s that no client wanted, the mean latency in us, how busy the cores were.
type discardStep struct{ taken, mean, busy float64 }

// judgeDiscards holds each step against the first, which discards nothing, where the cores were not full.
func (r *Report) judgeDiscards(steps []discardStep) {
	for _, s := range steps[1:] {
		ratio, busy := s.mean/max(1, steps[0].mean), max(s.busy, steps[0].busy)
		switch {
		case busy > fullCores:
			r.Differences = append(r.Differences, fmt.Sprintf("the cores were up to %.0f %% busy: the ratio with %.0f/s discarded, %.2f (allowed %.2f), is printed and not judged", 100*busy, s.taken, ratio, maxDiscardRatio))
		case ratio > maxDiscardRatio:
			r.judge(Fail, "the mean with %.0f/s discarded is %.2f of that without, allowed: %.2f", s.taken, ratio, maxDiscardRatio)
		}
	}
}

// large streams messages of both published sizes.
func large(ctx context.Context, d *published.Data, s published.Scenario, o Options, r *Report) (err error) {
	p, err := fanoutOf(d, s, o.Mode)
	if err != nil {
		return err
	}
	r.Columns = streamColumns
	streamDifferences(r, p)
	st, err := o.newStreams(ctx, p, 0, max(slices.Max(p.Clients), slices.Max(p.ManyClients)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.end()) }()
	exact, _, err := d.Fanout(s)
	if err != nil {
		return err
	}
	preset := p.VeryHigh
	for _, size := range []struct {
		payload            int
		table              string
		clients, published []int
	}{{p.Payload[0], "3-9", p.Clients, exact.Clients}, {p.Payload[1], "3-11", p.ManyClients, exact.ManyClients}} {
		preset.Payload = size.payload
		for i, n := range size.clients {
			f := flood{name: fmt.Sprintf("%d bytes", size.payload), preset: preset, clients: n}
			x, err := st.flood(ctx, f, false)
			if err != nil {
				return err
			}
			was, _ := d.Cell("solace", size.table, float64(n), "avg_us")
			streamRow(r, f, x, was.Value)
			mean, _, _, _, _, _ := x.stats()
			r.streamFigure(d, size.table, size.published, i, f, "avg_us", mean)
			r.line(d, size.table, size.published, i, f, x)
		}
	}
	return st.streamControl(ctx, r, preset)
}

// line holds the bandwidth against what clients, rate and payload come to.
func (r *Report) line(d *published.Data, table string, clients []int, i int, f flood, x *flooded) {
	want := float64(f.clients*f.preset.RateEach*f.preset.Payload) * 8 / 1e6
	r.streamFigure(d, table, clients, i, f, "egress_user_mbps", x.user)
	if share := x.user / max(1, want); share < 0.99 || share > 1.01 {
		r.judge(Fail, "%s, %d clients: %.1f Mbit/s of payloads, and clients x rate x payload is %.1f (allowed: 1 %% off)", f.name, f.clients, x.user, want)
	}
}
