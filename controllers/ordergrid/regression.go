package ordergrid

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// lead is a configuration that cannot be older than the one the record shows: the record has gone back, because etcd was
// restored from a backup.
type lead struct {
	configuration
	holders []holder // grid nodes that go by a configuration ahead of the record; the highest first
}

// holder is a grid node's word.
type holder struct {
	configuration
	member, role string
}

func (h holder) String() string { return h.member + " (" + h.role + ")" }

// findLead compares the record with what the operator remembers and with what the nodes say.
func (f *finding) findLead(answers map[string]*answer) *lead {
	here := configurationOf(f.record)
	var holders []holder
	for _, a := range answers {
		if a.node == nil {
			continue
		}
		if p := a.node.Find(f.record.Name); p != nil {
			if h := holderOf(p); h.ahead(here) {
				holders = append(holders, h)
			}
		}
	}
	slices.SortFunc(holders, func(a, b holder) int {
		return cmp.Or(cmp.Compare(b.epoch, a.epoch), cmp.Compare(a.member, b.member))
	})
	highest := f.memory.highest
	if len(holders) > 0 && holders[0].ahead(highest) {
		highest = holders[0].configuration
	}
	if !highest.ahead(here) {
		return nil
	}
	return &lead{configuration: highest, holders: holders}
}

func holderOf(p *nodestatus.Partition) holder {
	const limit = 1 << 62 // what a node says is a number of any size
	return holder{configuration{int64(min(p.Epoch, limit)), p.ChangeID}, p.Member, p.Role}
}

// shows reports whether a node goes by the configuration with that change id, and none by a later one.
func (l *lead) shows(changeID string) bool {
	return slices.ContainsFunc(l.holders, func(h holder) bool {
		return h.epoch == l.holders[0].epoch && h.changeID == changeID
	})
}

// by says who goes by the highest configuration that a node still has.
func (l *lead) by() string {
	var names []string
	for _, h := range l.holders {
		if h.configuration == l.holders[0].configuration {
			names = append(names, h.String())
		}
	}
	if len(names) == 0 {
		return "no grid node that answers goes by it any more"
	}
	return fmt.Sprintf("%s %s", strings.Join(names, " and "), plural(len(names), "goes by it", "go by it"))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
