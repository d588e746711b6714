package recorder

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// Bounds of what nodes may tell.
const (
	maxFunctions = 64 // of each kind
	// maxSets are tags that may be set: a chain has at most 8 functions of 16 tags and a stamp, and
	// there may be several chains.
	maxSets = 4 * (8*16 + 1)
)

// asked is what nodes answered when they were asked for their functions.
type asked struct {
	told   int // nodes that answered
	post   []history.PostFunction
	unread []string // nodes that did not, and why
}

// askFunctions finds out which functions the grid calls for orders, and adds to what is known.
func (n *nodes) askFunctions(ctx context.Context, rows []row, known *history.Functions) (*history.Functions, asked) {
	addresses := n.addresses(rows)
	answers, errs := make([]*nodestatus.Node, len(addresses)), make([]error, len(addresses))
	var wg sync.WaitGroup
	for i, a := range addresses {
		wg.Go(func() { answers[i], errs[i] = nodestatus.Get(ctx, n.http, a) })
	}
	wg.Wait()
	var now asked
	f := known
	for i, answer := range answers {
		if errs[i] != nil {
			if len(now.unread) < maxFunctions {
				now.unread = append(now.unread, fmt.Sprintf("%s: %v", addresses[i], errs[i]))
			}
			continue
		}
		now.told++
		if answer.Functions == nil && len(answer.Posts) == 0 {
			continue
		}
		if f == nil {
			f = &history.Functions{}
		}
		addFunctions(f, answer)
		addPosts(&now.post, answer)
	}
	return f, now
}

// addFunctions adds what a node told.
func addFunctions(f *history.Functions, n *nodestatus.Node) {
	add := func(list *[]string, s string) {
		if s = clip(s); !slices.Contains(*list, s) && len(*list) < maxFunctions {
			*list = append(*list, s)
		}
	}
	if x := n.Functions; x != nil {
		add(&f.Chains, x.Chain)
		f.Stamp = cmp.Or(x.Stamp, f.Stamp)
		tags := []uint32{x.Stamp}
		for i := range x.Pre {
			add(&f.Pre, x.Pre[i].Name)
			tags = append(tags, x.Pre[i].Tags...)
		}
		for _, tag := range tags {
			if tag != 0 && !slices.Contains(f.Sets, tag) && len(f.Sets) < maxSets {
				f.Sets = append(f.Sets, tag)
			}
		}
	}
	addPosts(&f.Post, n)
}

func addPosts(list *[]history.PostFunction, n *nodestatus.Node) {
	for i := range n.Posts {
		p := history.PostFunction{Name: clip(n.Posts[i].Name), SHA256: clip(n.Posts[i].SHA256)}
		if !slices.Contains(*list, p) && len(*list) < maxFunctions {
			*list = append(*list, p)
		}
	}
}

// roomForRecords makes the ledger smaller by what records of functions take.
func (r *Recorder) roomForRecords(f *history.Functions) {
	if f != nil && r.cfg.MaxOrders == 0 {
		r.maxOrders = api.WithRecords(r.maxOrders, r.cfg.Replicas, len(f.Post))
	}
}

// noteFunctions reports what the certificate cannot know of functions, and what was changed between the
// two questions.
func noteFunctions(h *history.History, first, last asked) {
	for _, q := range []struct {
		asked
		when string
	}{{first, "in the beginning"}, {last, "at the end"}} {
		if q.told == 0 {
			why := "no address of the HTTP port of a node is known (--node-port, --node-http)"
			if len(q.unread) > 0 {
				why = q.unread[0]
			}
			h.Notes = append(h.Notes, fmt.Sprintf("%s no node told which functions the grid calls for orders: %s", q.when, why))
		}
	}
	f := h.Functions
	if f == nil {
		return
	}
	if first.told > 0 && last.told > 0 {
		for i := range f.Post {
			p := &f.Post[i]
			before, after := slices.Contains(first.post, *p), slices.Contains(last.post, *p)
			if p.Changed = before != after; p.Changed {
				h.Notes = append(h.Notes, fmt.Sprintf("function %s of kind Post, module %.16s, was in force only %s", p.Name, p.SHA256, when(before)))
			}
		}
	}
	f.Unread = slices.Concat(first.unread, last.unread)
	for _, u := range f.Unread {
		h.Notes = append(h.Notes, "which functions it has was not told by "+u)
	}
	if n := len(f.Chains); n > 1 {
		h.Notes = append(h.Notes, fmt.Sprintf("nodes decided by %d different chains of functions: they were changed during the drill", n))
	}
}

func when(before bool) string {
	if before {
		return "in the beginning of the drill, and not at its end"
	}
	return "at the end of the drill, and not in its beginning"
}
