// Package placement decides which shard holds each partition of a grid, and which
// partitions move next. It is a pure function of the observation: the same observation
// gives the same plan, and a completed plan gives an empty one. The operator and the
// simulated operator use it.
//
// All copies of a partition are on the pods of one shard, except during a move. So two
// pods that fail together cost orders of the few partitions of one shard, and not of any
// two (copysets).
package placement

import (
	"cmp"
	"fmt"
	"slices"
)

// Shard is a set of pods that can hold partitions.
type Shard struct {
	ID int
	// Leaves: it is to be removed, and all its partitions move away.
	Leaves bool
	// Closed is why no partition may move to it now, "" if it may: its pods are not ready,
	// or are being replaced.
	Closed string
}

// Partition is one observed partition.
type Partition struct {
	ID   int
	Home int // the shard that its record names
	// Held are the shards with a pod that is in sync, in rising order.
	Held  []int
	Bytes int64 // approximate size of its orders, copied by a move
	// Moving: it does not match its record yet. It is left alone until it does.
	Moving bool
	// Stays is why it may not move now, "" if it may: it has no primary, or lacks copies.
	Stays string
}

// Limits of a plan.
type Limits struct {
	Concurrent int // moves in progress at a time, at least 1
}

// Move gives a partition another home.
type Move struct {
	Partition, From, To int
	Bytes               int64
	Back                bool // back to its copies: the new shard failed before it had one
}

// Plan is what to do next.
type Plan struct {
	Begin   []Move // now
	Queued  []Move // after those: others are in progress
	Waiting []string
}

// Next plans the moves after which every remaining shard has as many partitions as the
// others, or one fewer, and a leaving one has none. Of all such plans it picks one that
// moves the fewest partitions, and within a shard the smallest.
func Next(shards []Shard, partitions []Partition, limits Limits) (p Plan) {
	b := newBoard(shards, partitions)
	b.turnBack(&p)
	free := max(1, limits.Concurrent) - b.moving
	for _, m := range b.moves(&p) {
		if free > 0 && b.may(m, &p) {
			p.Begin = append(p.Begin, m)
			free--
		} else {
			p.Queued = append(p.Queued, m)
		}
	}
	return p
}

// Home is the first shard of a partition of a new grid: the partition number modulo
// shards.
func Home(partition, shards int) int { return partition % shards }

type place struct {
	*Shard
	has  []*Partition // whose home it is
	wish int
}

type board struct {
	places []*place // by id
	moving int
}

func newBoard(shards []Shard, partitions []Partition) *board {
	b := &board{}
	for i := range shards {
		b.places = append(b.places, &place{Shard: &shards[i]})
	}
	slices.SortFunc(b.places, func(x, y *place) int { return cmp.Compare(x.ID, y.ID) })
	for i := range partitions {
		p := &partitions[i]
		if p.Moving {
			b.moving++
		}
		if at := b.at(p.Home); at != nil {
			at.has = append(at.has, p)
		}
	}
	for _, at := range b.places { // the smallest go first
		slices.SortFunc(at.has, func(x, y *Partition) int { return cmp.Or(cmp.Compare(x.Bytes, y.Bytes), cmp.Compare(x.ID, y.ID)) })
	}
	b.share(len(partitions))
	return b
}

func (b *board) at(shard int) *place {
	for _, at := range b.places {
		if at.ID == shard {
			return at
		}
	}
	return nil
}

// share assigns every remaining shard its part. Shards with the most partitions get the
// remainder.
func (b *board) share(n int) {
	var stay []*place
	for _, at := range b.places {
		if !at.Leaves {
			stay = append(stay, at)
		}
	}
	if len(stay) == 0 {
		return
	}
	slices.SortStableFunc(stay, func(x, y *place) int { return cmp.Compare(len(y.has), len(x.has)) })
	for i, at := range stay {
		at.wish = n / len(stay)
		if i < n%len(stay) {
			at.wish++
		}
	}
}

// turnBack returns partitions home whose new shard cannot take them, as long as no copy is
// there yet.
func (b *board) turnBack(p *Plan) {
	for _, at := range b.places {
		if at.Closed == "" && !at.Leaves {
			continue
		}
		for _, q := range slices.Clone(at.has) {
			if !q.Moving || len(q.Held) != 1 || q.Held[0] == at.ID {
				continue
			}
			if back := b.at(q.Held[0]); back != nil && !back.Leaves {
				p.Begin = append(p.Begin, Move{Partition: q.ID, From: at.ID, To: back.ID, Back: true})
				at.has = slices.DeleteFunc(at.has, func(o *Partition) bool { return o == q })
				back.has = append(back.has, q)
			}
		}
	}
}

// moves lists the remaining moves, the most urgent first: from the shard with the largest
// excess to the one with the largest deficit.
func (b *board) moves(p *Plan) (list []Move) {
	for {
		from := b.giver()
		if from == nil {
			return list
		}
		i := slices.IndexFunc(from.has, func(q *Partition) bool { return !q.Moving && q.Stays == "" })
		to := b.taker()
		if i < 0 || to == nil {
			for _, q := range from.has {
				if q.Stays != "" {
					p.Waiting = append(p.Waiting, fmt.Sprintf("p%d stays on shard %d: %s", q.ID, from.ID, q.Stays))
				}
			}
			from.wish = len(from.has) // no more of it
			continue
		}
		q := from.has[i]
		list = append(list, Move{Partition: q.ID, From: from.ID, To: to.ID, Bytes: q.Bytes})
		from.has = slices.Delete(from.has, i, i+1)
		to.has = append(to.has, &Partition{ID: q.ID, Moving: true})
	}
}

// giver returns the shard with the largest excess of partitions; nil if none.
func (b *board) giver() (from *place) {
	for _, at := range b.places {
		if at.over() > 0 && (from == nil || at.over() > from.over()) {
			from = at
		}
	}
	return from
}

// taker returns the shard with the largest deficit, preferring one that accepts moves now;
// nil if none.
func (b *board) taker() (to *place) {
	for _, at := range b.places {
		if at.over() >= 0 || at.Leaves {
			continue
		}
		if to == nil || (at.Closed == "") != (to.Closed == "") && at.Closed == "" || (at.Closed == "") == (to.Closed == "") && at.over() < to.over() {
			to = at
		}
	}
	return to
}

// over returns how many partitions a shard has beyond its part.
func (at *place) over() int { return len(at.has) - at.wish }

// may reports whether a move can begin, and records the reason if not.
func (b *board) may(m Move, p *Plan) bool {
	why := b.at(m.To).Closed
	if why == "" {
		return true
	}
	if text := fmt.Sprintf("p%d waits for shard %d: %s", m.Partition, m.To, why); !slices.Contains(p.Waiting, text) {
		p.Waiting = append(p.Waiting, text)
	}
	return false
}
