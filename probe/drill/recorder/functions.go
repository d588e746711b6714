package recorder

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/drill/room"
)

// maxFunctions of each kind that a node may tell of.
const maxFunctions = 64

// askFunctions finds out which functions the grid calls for orders, and adds to what is known.
func (r *Recorder) askFunctions(ctx context.Context, known *history.Functions) *history.Functions {
	addresses := r.nodeHTTP.addresses(r.watch.Table())
	answers, errs := make([]*nodestatus.Node, len(addresses)), make([]error, len(addresses))
	var wg sync.WaitGroup
	for i, a := range addresses {
		wg.Go(func() { answers[i], errs[i] = nodestatus.Get(ctx, r.nodeHTTP.http, a) })
	}
	wg.Wait()
	f := known
	for i, n := range answers {
		if errs[i] != nil || n.Functions == nil && len(n.Posts) == 0 {
			continue
		}
		if f == nil {
			f = &history.Functions{}
		}
		addFunctions(f, n)
	}
	for i, err := range errs {
		if err != nil && f != nil && len(f.Unread) < maxFunctions {
			f.Unread = append(f.Unread, fmt.Sprintf("%s: %v", addresses[i], err))
		}
	}
	return f
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
			if tag != 0 && !slices.Contains(f.Sets, tag) && len(f.Sets) < maxFunctions {
				f.Sets = append(f.Sets, tag)
			}
		}
	}
	for i := range n.Posts {
		p := history.PostFunction{Name: clip(n.Posts[i].Name), SHA256: clip(n.Posts[i].SHA256)}
		if !slices.Contains(f.Post, p) && len(f.Post) < maxFunctions {
			f.Post = append(f.Post, p)
		}
	}
}

// roomForRecords makes the ledger smaller by what records of functions take.
func (r *Recorder) roomForRecords(f *history.Functions) {
	if f != nil && r.cfg.MaxOrders == 0 {
		r.maxOrders = room.WithRecords(r.maxOrders, r.cfg.Replicas, len(f.Post))
	}
}

// noteFunctions says what the certificate cannot know of functions.
func noteFunctions(h *history.History) {
	f := h.Functions
	if f == nil {
		return
	}
	for _, u := range f.Unread {
		h.Notes = append(h.Notes, "which functions it has was not told by "+u)
	}
	if n := len(f.Chains); n > 1 {
		h.Notes = append(h.Notes, fmt.Sprintf("nodes decided by %d different chains of functions: they were changed during the drill", n))
	}
}
