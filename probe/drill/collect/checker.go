package collect

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// checker compares the messages of one log with the orders that were sent. Tags that functions of
// the grid may set may have any value, which it counts.
type checker struct {
	h      *history.History
	sets   []uint32
	makers map[int]maker
	orders int64
	values map[uint32]map[string]int64
}

// maker makes the orders of a stream again.
type maker interface {
	Check(index int64, fix []byte) error
	CheckSet(index int64, fix []byte, tags []uint32) error
}

// maxValues of a tag are counted apart, the rest together.
const (
	maxValues   = 64
	otherValues = "(others)"
)

func newChecker(h *history.History) *checker {
	k := &checker{h: h, makers: map[int]maker{}, values: map[uint32]map[string]int64{}}
	if h.Functions != nil {
		k.sets = h.Functions.Sets
	}
	for _, tag := range k.sets {
		k.values[tag] = map[string]int64{}
	}
	return k
}

func (k *checker) check(stream int, index int64, fix []byte) error {
	k.count(fix)
	if k.h.Trading == nil && len(k.sets) == 0 {
		return fixorder.Check(fix)
	}
	m, err := k.maker(stream)
	switch {
	case err != nil:
		return err
	case len(k.sets) > 0:
		return m.CheckSet(index, fix, k.sets)
	}
	return m.Check(index, fix)
}

func (k *checker) maker(stream int) (m maker, err error) {
	if m = k.makers[stream]; m != nil {
		return m, nil
	}
	of, version := &k.h.Streams[stream], cmp.Or(k.h.FIX, fixorder.FIX42)
	if k.h.Trading == nil {
		m, err = fixorder.NewMaker(version, of.ID)
	} else {
		m, err = fixorder.NewTrading(version, of.ID, k.h.Trading[of.Partition])
	}
	if err == nil {
		k.makers[stream] = m
	}
	return m, err
}

func (k *checker) count(fix []byte) {
	k.orders++
	for _, tag := range k.sets {
		values, v := k.values[tag], string(order.TagValue(fix, tag))
		if _, known := values[v]; !known && len(values) >= maxValues {
			v = otherValues
		}
		values[v]++
	}
}

// decided is what was counted in a log.
func (k *checker) decided(l *history.Log) history.Decided {
	d := history.Decided{Partition: l.Partition, Where: l.Where, InSync: l.InSync, Orders: k.orders}
	for _, tag := range k.sets {
		for _, v := range slices.Sorted(maps.Keys(k.values[tag])) {
			d.Values = append(d.Values, history.SetValue{Tag: tag, Value: v, Orders: k.values[tag][v]})
		}
	}
	return d
}
