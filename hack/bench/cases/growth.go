package cases

import (
	"fmt"

	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// Growth are the cases that vary one thing at a time. They run on loopback and
// with two copies where these are not what varies, and on request only: CASES=growth is all, CASES=growth/held
// one curve.
func Growth() []Case {
	all := held()
	for _, n := range []int{1, 2, 4, 8, 16, 32, 64} {
		all = append(all, growth(Case{Name: fmt.Sprintf("connections-%02d", n), Title: fmt.Sprintf("%d synchronous clients", n),
			Shape: closed(generator.Submit, n, 1), Judged: HighRate}))
	}
	for _, n := range []int{1, 2, 4, 8, 16} {
		all = append(all, growth(Case{Name: fmt.Sprintf("partitions-%02d", n), Title: fmt.Sprintf("%d partitions, 16 clients, 16 orders unanswered each", n),
			Shape: closed(generator.Submit, 16, 16), Judged: HighRate, Partitions: n, GridOnly: true}))
	}
	for _, n := range []int{1, 2, 3} {
		all = append(all,
			growth(Case{Name: fmt.Sprintf("copies-%d-rate-6000", n), Title: fmt.Sprintf("%d copies, 6,000 orders/s", n),
				Shape: open(6000), Judged: LowP50, Copies: n, GridOnly: true, MemoryMiB: 4 << 10}),
			growth(Case{Name: fmt.Sprintf("copies-%d-pipe-64x4", n), Title: fmt.Sprintf("%d copies, 4 clients, 64 unanswered each", n),
				Shape: closed(generator.Submit, 4, 64), Judged: HighRate, Copies: n, GridOnly: true, MemoryMiB: 4 << 10}))
	}
	for _, size := range []int{generator.MinOrder, fixorder.Size, 512, 1024, 2048, 4096} {
		all = append(all,
			growth(Case{Name: fmt.Sprintf("payload-%04d-rate-6000", size), Title: fmt.Sprintf("orders of %d bytes, 6,000 orders/s", size),
				Shape: open(6000), Judged: LowP50, Size: size}),
			growth(Case{Name: fmt.Sprintf("payload-%04d-pipe-64x4", size), Title: fmt.Sprintf("orders of %d bytes, 4 clients, 64 unanswered each", size),
				Shape: closed(generator.Submit, 4, 64), Judged: HighRate, Size: size, MemoryMiB: 9 << 10}))
	}
	return all
}

// held measures with so many orders in memory. The floors hold none.
func held() (all []Case) {
	for _, h := range []struct {
		name string
		n    int64
	}{{"10k", 10_000}, {"100k", 100_000}, {"1m", 1_000_000}, {"10m", 10_000_000}, {"20m", 20_000_000}} {
		for _, l := range []struct {
			name, title string
			shape       generator.Shape
			judged      Better
		}{
			{"rate-6000", "6,000 orders/s", open(6000), LowP50},
			{"pipe-64x4", "4 clients, 64 orders unanswered each", closed(generator.Submit, 4, 64), HighRate},
			{"get", "one client reads by ClOrdID", closed(generator.Get, 1, 1), LowP50},
		} {
			all = append(all, growth(Case{Name: fmt.Sprintf("held-%s-%s", h.name, l.name), Title: fmt.Sprintf("%d orders held, %s", h.n, l.title),
				Shape: l.shape, Judged: l.judged, Held: h.n, GridOnly: true, MemoryMiB: 11 << 10}))
		}
	}
	return all
}

func growth(c Case) Case {
	c.Name = "growth/" + c.Name
	c.Network, c.Group = "lo", "growth"
	if c.Copies == 0 {
		c.Copies = 2
	}
	if c.Partitions == 0 {
		c.Partitions = 1
	}
	if c.Size == 0 {
		c.Size = fixorder.Size
	}
	if c.MemoryMiB == 0 {
		c.MemoryMiB = 8 << 10
	}
	return c
}
