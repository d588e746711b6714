package listener

import (
	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// interestOf returns selectors for all that a subscription is for, and maybe for more: patterns and filters can say what
// the log does not select by. Executions are in a grid that matches.
func interestOf(p topics.Pattern, f topics.Filter, matches, regions bool) []client.Selector {
	first, literal := p.First()
	var kinds client.Kinds
	var list []client.Selector
	if !literal || first == Downstream || regions && first == Regions { // the log does not select by them
		list = append(list, client.Selector{Kinds: client.KindOther})
	}
	if !literal || first == Orders {
		kinds |= client.KindOrders
	}
	if matches && (!literal || first == Executions) {
		kinds |= client.KindExecutions
	}
	if first == Executions {
		kinds &= executionKinds(&f)
	}
	if kinds == 0 {
		return list
	}
	accounts, symbols := values(p, &f, placeAccount), values(p, &f, placeSymbol)
	if len(accounts)*len(symbols) > mostOfOne { // one of the sets alone
		if len(accounts) <= len(symbols) {
			symbols = anyValue
		} else {
			accounts = anyValue
		}
	}
	for _, a := range accounts {
		for _, s := range symbols {
			list = append(list, client.Selector{Kinds: kinds, Account: a, Symbol: s})
		}
	}
	return list
}

const (
	// Places of a topic behind the first, each the index of its field plus one.
	placeAccount = 1
	placeSymbol  = 2
	fieldKind    = 3
	// mostOfOne selectors are made of one subscription.
	mostOfOne = 64
)

// anyValue stands for all values.
var anyValue = []string{""}

// values are those that messages have at a place of their topic. An order without a value has an empty token, and none
// that it could be selected by.
func values(p topics.Pattern, f *topics.Filter, place int) []string {
	list, bounded := f.Values(place - 1)
	if raw, fixed := p.Token(place); fixed {
		list, bounded = [][]byte{raw}, true
	}
	if !bounded {
		return anyValue
	}
	var all []string
	for _, v := range list {
		switch {
		case len(v) == 0:
			return anyValue
		case len(v) <= wire.MaxSelectedValue: // no order has a longer one
			all = append(all, string(v))
		}
	}
	return all
}

// executionKinds are those of executions that a filter lets through.
func executionKinds(f *topics.Filter) (kinds client.Kinds) {
	list, bounded := f.Values(fieldKind)
	if !bounded {
		return client.KindExecutions
	}
	for k := client.ExecAccepted; k <= client.ExecTriggered; k++ {
		for _, v := range list {
			if string(v) == k.String() {
				kinds |= client.KindExecution(k)
			}
		}
	}
	return kinds
}

// interest is what one subscription is for.
type interest struct {
	pattern topics.Pattern
	filter  topics.Filter
	list    []client.Selector
}

func (g *generation) interest(s *fanout.Sub) (i interest) {
	i.pattern, i.filter = s.For()
	i.list = interestOf(i.pattern, i.filter, g.matches(), g.streamsRegions())
	return i
}

func (i *interest) takes(m *fanout.Message) bool {
	return i.pattern.Matches(m.Topic) && i.filter.Matches(m.Fields)
}

// of is an account and a symbol; empty: any.
type of struct{ account, symbol string }

// selected is what the nodes are asked for.
type selected struct {
	kinds map[of]client.Kinds
	list  []client.Selector
	bytes int // of its frame
}

func newSelected() *selected {
	return &selected{kinds: map[of]client.Kinds{}, bytes: wire.SelectSize}
}

// add adds a selector.
func (s *selected) add(k *client.Selector) {
	at := of{k.Account, k.Symbol}
	before := s.kinds[at]
	if s.kinds[at] |= k.Kinds; before == 0 {
		s.bytes += wire.SelectorSize(len(k.Account), len(k.Symbol))
	}
}

// fits reports whether the nodes take it, with a part of the room to spare.
func (s *selected) fits(numerator, denominator int) bool {
	return len(s.kinds)*denominator <= wire.MaxSelectors*numerator && s.bytes*denominator <= wire.MaxSelectSize*numerator
}

// covers reports whether all that selectors let through is let through.
func (s *selected) covers(list []client.Selector) bool {
	for i := range list {
		k := &list[i]
		if k.Kinds&^(s.kinds[of{}]|s.kinds[of{k.Account, ""}]|s.kinds[of{"", k.Symbol}]|s.kinds[of{k.Account, k.Symbol}]) != 0 {
			return false
		}
	}
	return true
}

// same reports whether both let the same through.
func (s *selected) same(o *selected) bool {
	if len(s.kinds) != len(o.kinds) {
		return false
	}
	for at, kinds := range s.kinds {
		if o.kinds[at] != kinds {
			return false
		}
	}
	return true
}

// seal makes the list of selectors.
func (s *selected) seal() {
	for at, kinds := range s.kinds {
		s.list = append(s.list, client.Selector{Kinds: kinds, Account: at.account, Symbol: at.symbol})
	}
}
