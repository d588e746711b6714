package recorder

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// pollChanges is the polling interval for changes of the nodes' configuration during a step: a node
// that is killed later loses its reports.
const pollChanges = 250 * time.Millisecond

// slack is how much before a step a change may be and still be shown with it: ages are of another
// clock, and the answer took some time.
const slack = int64(100 * time.Millisecond)

// maxChanges of one step.
const maxChanges = 1024

type changeKey struct {
	partition string
	epoch     uint64
	member    string
	cause     string
}

// nodes are the HTTP ports of the grid's nodes.
type nodes struct {
	fixed []string
	port  string
	http  *http.Client
}

func newNodes(cfg Config) *nodes {
	return &nodes{fixed: cfg.NodeHTTP, port: strconv.Itoa(cfg.NodePort), http: nodestatus.NewClient(time.Second, nil)}
}

// addresses of all nodes in the table.
func (n *nodes) addresses(rows []row) (out []string) {
	if len(n.fixed) > 0 {
		return n.fixed
	}
	for _, r := range rows {
		for _, m := range r.Members {
			if host, _, err := net.SplitHostPort(m.Address); err == nil && n.port != "0" {
				out = append(out, net.JoinHostPort(host, n.port))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// watchChanges queries the nodes during a step.
func (r *Recorder) watchChanges(ctx context.Context) {
	for clock.Wait(ctx, pollChanges) == nil {
		if len(r.curious()) > 0 {
			r.askChanges(ctx)
		}
	}
}

// afterwards is how long after a step the nodes are still queried about it: it may be over before
// the first query.
const afterwards = int64(time.Second)

// curious are the steps that need changes.
func (r *Recorder) curious() (out []*step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := clock.Now()
	for i := len(r.steps) - 1; i >= 0 && i >= len(r.steps)-2*maxOpen; i-- {
		if s := r.steps[i]; !s.over || now < s.end()+afterwards {
			out = append(out, s)
		}
	}
	return out
}

// askChanges queries all nodes concurrently; those that do not answer are skipped.
func (r *Recorder) askChanges(ctx context.Context) {
	r.mu.Lock()
	addresses := r.nodeHTTP.addresses(r.view.rows)
	r.mu.Unlock()
	steps := r.curious()
	var wg sync.WaitGroup
	for _, a := range addresses {
		wg.Go(func() {
			asked := clock.Now()
			t, err := nodestatus.GetTakeovers(ctx, r.nodeHTTP.http, a)
			if err != nil {
				return
			}
			// Ages refer to some moment between request and answer.
			at := asked + (clock.Now()-asked)/2
			r.mu.Lock()
			defer r.mu.Unlock()
			for _, s := range steps {
				s.learn(t, at)
			}
		})
	}
	wg.Wait()
}

// learn adds the changes reported by a node at a time.
func (s *step) learn(t *nodestatus.Takeovers, at int64) {
	for i := range t.Changes {
		c := &t.Changes[i]
		key := changeKey{c.Partition, c.Epoch, c.Member, c.Cause}
		if _, known := s.changes[key]; !known && len(s.changes) >= maxChanges || c.Cause == nodestatus.CauseUnknown {
			continue
		}
		was := s.changes[key]
		// The first answer that has a time is the most precise: its age is the shortest.
		when := func(known, ago int64) int64 {
			if known != 0 || ago <= 0 {
				return known
			}
			return at - ago
		}
		next := history.Change{Partition: clip(c.Partition), Epoch: c.Epoch, Cause: clip(c.Cause), By: clip(c.Member), Primary: clip(c.Primary), InSync: len(c.InSync), Reset: c.Reset, Silent: c.SilentNs,
			Suspected: when(was.Suspected, c.SuspectedAgoNs), Proposed: when(was.Proposed, c.ProposedAgoNs), Accepted: when(was.Accepted, c.AcceptedAgoNs),
			Serving: when(was.Serving, c.ServingAgoNs), FirstOrder: when(was.FirstOrder, c.FirstOrderAgoNs)}
		if max(next.Suspected, next.Proposed, next.Accepted) >= s.rep.From-slack {
			s.changes[key] = next
		}
	}
}

// clip bounds a node's contribution to a certificate.
func clip(text string) string { return text[:min(len(text), 256)] }

// told are the reported changes of a step by time. What began after its end belongs to the next.
func (s *step) reported() (out []history.Change) {
	for _, c := range s.changes {
		if first := cmp.Or(c.Suspected, c.Proposed, c.Accepted); s.rep.Failed != "" || first <= s.end()+slack {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b history.Change) int {
		return cmp.Or(cmp.Compare(max(a.Proposed, a.Accepted), max(b.Proposed, b.Accepted)), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.By, b.By))
	})
	return out
}
