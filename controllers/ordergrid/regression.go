package ordergrid

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// lead is a configuration that cannot be older than that of the record: the record has gone back, because etcd was
// restored from a backup.
type lead struct {
	configuration
	holders []holder // grid nodes with a configuration ahead of the record; the highest first
}

// holder is the state reported by a grid node.
type holder struct {
	configuration
	member, role string
}

func (h holder) String() string { return h.member + " (" + h.role + ")" }

// findLead compares the record with the operator's memory and the nodes' reports.
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
	const limit = 1 << 62 // a node may report a number of any size
	return holder{configuration{int64(min(p.Epoch, limit)), p.ChangeID}, p.Member, p.Role}
}

// shows reports whether a node has the configuration with that change id, and none has a later one.
func (l *lead) shows(changeID string) bool {
	return slices.ContainsFunc(l.holders, func(h holder) bool {
		return h.epoch == l.holders[0].epoch && h.changeID == changeID
	})
}

// by names the nodes with the highest configuration that a node still has.
func (l *lead) by() string {
	var names []string
	for _, h := range l.holders {
		if h.configuration == l.holders[0].configuration {
			names = append(names, h.String())
		}
	}
	if len(names) == 0 {
		return "no grid node that answers has it any more"
	}
	return fmt.Sprintf("%s %s", strings.Join(names, " and "), plural(len(names), "uses it", "use it"))
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
