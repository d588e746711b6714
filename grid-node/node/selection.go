package node

import (
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// selection is what a stream sends. The zero selection is everything that there is in the
// log, as Follow sends it.
type selection struct {
	what              uint8           // of wire.Stream; 0: of a Follow, entries
	accounts, symbols map[string]bool // nil: all
}

func setOf(list [][]byte) map[string]bool {
	if len(list) == 0 {
		return nil
	}
	set := make(map[string]bool, len(list))
	for _, v := range list {
		set[string(v)] = true
	}
	return set
}

// all reports whether each entry has something to be sent.
func (s *selection) all() bool {
	return s.what != wire.StreamExecutions && s.accounts == nil && s.symbols == nil
}

// orders reports whether entries are sent.
func (s *selection) orders() bool { return s.what != wire.StreamExecutions }

// takes reports whether an entry is sent.
func (s *selection) takes(entry []byte) bool {
	if s.accounts == nil && s.symbols == nil {
		return s.orders()
	}
	return s.orders() && order.Kind(entry[4]).IsOrder() && s.of(order.Account(entry), order.Symbol(entry))
}

// of reports whether something of an account and a symbol is sent.
func (s *selection) of(account, symbol []byte) bool {
	return (s.accounts == nil || s.accounts[string(account)]) && (s.symbols == nil || s.symbols[string(symbol)])
}
