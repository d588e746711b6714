package kube_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/arbitertest"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/kube"
)

// network is between one member and the API server. Its effect on a PUT is real: the API
// server gets the request or not, and commits it when it arrives.
type network struct {
	next http.RoundTripper

	mu   sync.Mutex
	mode string                   // "": as it is; "lose answer"; "hold"
	held chan func() (int, error) // requests that are still on their way; each delivers itself
}

func (n *network) set(mode string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mode = mode
}

func (n *network) RoundTrip(req *http.Request) (*http.Response, error) {
	n.mu.Lock()
	mode := n.mode
	n.mu.Unlock()
	if req.Method != http.MethodPut || mode == "" {
		return n.next.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	// The member times out; the request stays in flight.
	late := req.Clone(context.WithoutCancel(req.Context()))
	deliver := func() (int, error) {
		late.Body = io.NopCloser(bytes.NewReader(body))
		resp, err := n.next.RoundTrip(late)
		if err != nil {
			return 0, err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, resp.Body.Close()
	}
	if mode == "hold" {
		n.held <- deliver
	} else if _, err := deliver(); err != nil {
		return nil, err
	}
	return nil, context.DeadlineExceeded // what the member's own deadline would end in, without waiting for it
}

// member is an arbiter behind a network of its own.
func (f *fixture) member(t *testing.T) (*kube.Arbiter, *network) {
	t.Helper()
	n := &network{held: make(chan func() (int, error), 8)}
	cfg := rest.CopyConfig(f.cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		n.next = next
		return n
	})
	a, err := kube.New(cfg, f.ns)
	if err != nil {
		t.Fatal(err)
	}
	return a, n
}

// propose makes a PUT for the record as it was read.
func propose(t *testing.T, a *kube.Arbiter, name, version string, r arbiter.Record) (arbiter.Record, error) {
	t.Helper()
	r.Name, r.Version = name, version
	return a.CompareAndSwap(t.Context(), r)
}

// two members of a pair at epoch 2, each behind its own network, and the record as both read it.
func (f *fixture) two(t *testing.T) (a, b *kube.Arbiter, na, nb *network, read arbiter.Record) {
	t.Helper()
	name := f.reach(t, arbitertest.Rec(2, 1, "c2", arbitertest.A, arbitertest.A, arbitertest.B))
	a, na = f.member(t)
	b, nb = f.member(t)
	read, err := a.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return a, b, na, nb, read
}

// The answer to a PUT is lost although the API server committed it: the proposer gets
// ErrUnknown, finds its own change with a quorum read, and the other member, which read
// the same version, loses.
func TestCommittedButTimedOut(t *testing.T) {
	f := newFixture(t)
	a, b, na, _, read := f.two(t)
	na.set("lose answer")
	shrink := arbitertest.Rec(3, 1, "a-drops-b", arbitertest.A, arbitertest.A)
	if _, err := propose(t, a, read.Name, read.Version, shrink); !errors.Is(err, arbiter.ErrUnknown) {
		t.Fatalf("the answer was lost, and the proposer got %v", err)
	}
	takeOver := arbitertest.Rec(3, 1, "b-takes-over", arbitertest.B, arbitertest.B)
	if _, err := propose(t, b, read.Name, read.Version, takeOver); !errors.Is(err, arbiter.ErrConflict) {
		t.Fatalf("the other member: %v", err)
	}
	na.set("")
	now, err := a.Get(t.Context(), read.Name)
	if err != nil || now.ChangeID != "a-drops-b" || now.Epoch != 3 {
		t.Fatalf("record %+v, %v", now, err)
	}
	// The identical PUT again: not a second change, and b cannot go back.
	if _, err := propose(t, a, read.Name, read.Version, shrink); !errors.Is(err, arbiter.ErrConflict) {
		t.Errorf("the identical PUT at the old version: %v", err)
	}
	if again, err := propose(t, a, read.Name, now.Version, shrink); err != nil || again.Version != now.Version {
		t.Errorf("the identical PUT at the present version: %+v, %v", again, err)
	}
	if _, err := propose(t, b, read.Name, now.Version, arbitertest.Rec(4, 1, "b-again", arbitertest.B, arbitertest.B)); !errors.Is(err, arbiter.ErrRefused) {
		t.Errorf("the member that was dropped takes over: %v", err)
	}
}

// A PUT is stuck on its way, its proposer gives up waiting, the other member changes the record, and then the PUT lands.
func TestDelayedPutLandsLate(t *testing.T) {
	f := newFixture(t)
	a, b, na, _, read := f.two(t)
	na.set("hold")
	if _, err := propose(t, a, read.Name, read.Version, arbitertest.Rec(3, 1, "late", arbitertest.A, arbitertest.A)); !errors.Is(err, arbiter.ErrUnknown) {
		t.Fatalf("the PUT is on its way, and the proposer got %v", err)
	}
	won, err := propose(t, b, read.Name, read.Version, arbitertest.Rec(3, 1, "b-takes-over", arbitertest.B, arbitertest.B))
	if err != nil {
		t.Fatal(err)
	}
	if code, err := (<-na.held)(); err != nil || code != http.StatusConflict {
		t.Fatalf("the late PUT: status %d, %v; want 409", code, err)
	}
	if now, err := b.Get(t.Context(), read.Name); err != nil || now.Version != won.Version {
		t.Errorf("record %+v, %v", now, err)
	}
}

// As above, but the record has not moved: the PUT lands after its proposer read the old
// epoch from the API server. That read was no proof that the change would never happen,
// which is why a proposer never returns to its old epoch.
func TestDelayedPutLandsAfterTheReadThatMissedIt(t *testing.T) {
	f := newFixture(t)
	a, b, na, _, read := f.two(t)
	na.set("hold")
	if _, err := propose(t, a, read.Name, read.Version, arbitertest.Rec(3, 1, "late", arbitertest.A, arbitertest.A)); !errors.Is(err, arbiter.ErrUnknown) {
		t.Fatalf("the PUT is on its way, and the proposer got %v", err)
	}
	if now, err := a.Get(t.Context(), read.Name); err != nil || now.Version != read.Version {
		t.Fatalf("record %+v, %v", now, err)
	}
	if code, err := (<-na.held)(); err != nil || code != http.StatusOK {
		t.Fatalf("the late PUT: status %d, %v", code, err)
	}
	if _, err := propose(t, b, read.Name, read.Version, arbitertest.Rec(3, 1, "b-takes-over", arbitertest.B, arbitertest.B)); !errors.Is(err, arbiter.ErrConflict) {
		t.Errorf("the other member: %v", err)
	}
	if now, err := b.Get(t.Context(), read.Name); err != nil || now.ChangeID != "late" {
		t.Errorf("record %+v, %v", now, err)
	}
}

// Primary and backup race, with every fault on either side: whatever answers they get, one
// change wins, both read the same, and the loser can never follow with a change of its
// own.
func TestRaceUnderFaults(t *testing.T) {
	f := newFixture(t)
	modes := []string{"", "lose answer", "hold"}
	for i := range 9 {
		modeA, modeB := modes[i/3], modes[i%3]
		t.Run(fmt.Sprintf("%s against %s", orPlain(modeA), orPlain(modeB)), func(t *testing.T) {
			a, b, na, nb, read := f.two(t)
			na.set(modeA)
			nb.set(modeB)
			var errs [2]error
			var wg sync.WaitGroup
			wg.Go(func() {
				_, errs[0] = propose(t, a, read.Name, read.Version, arbitertest.Rec(3, 1, "of-a", arbitertest.A, arbitertest.A))
			})
			wg.Go(func() {
				_, errs[1] = propose(t, b, read.Name, read.Version, arbitertest.Rec(3, 1, "of-b", arbitertest.B, arbitertest.B))
			})
			wg.Wait()
			landed := 0
			for _, n := range []*network{na, nb} {
				n.set("")
				for len(n.held) > 0 {
					if code, err := (<-n.held)(); err != nil {
						t.Fatal(err)
					} else if code == http.StatusOK {
						landed++
					}
				}
			}
			now, err := a.Get(t.Context(), read.Name)
			if err != nil {
				t.Fatal(err)
			}
			if other, err := b.Get(t.Context(), read.Name); err != nil || other.Version != now.Version {
				t.Fatalf("b reads %+v, %v; a reads %+v", other, err, now)
			}
			if now.Epoch != 3 || landed > 1 {
				t.Fatalf("record %+v, %d late PUTs landed", now, landed)
			}
			for i, who := range []string{"of-a", "of-b"} {
				if errs[i] == nil && now.ChangeID != who {
					t.Errorf("%s got success, and %s won", who, now.ChangeID)
				}
				if now.ChangeID == who && (errors.Is(errs[i], arbiter.ErrConflict) || errors.Is(errs[i], arbiter.ErrRefused)) {
					t.Errorf("%s won, and got %v", who, errs[i])
				}
			}
			loser, proposer := arbitertest.B, b
			if now.ChangeID == "of-b" {
				loser, proposer = arbitertest.A, a
			}
			if _, err := propose(t, proposer, read.Name, now.Version, arbitertest.Rec(4, 1, "after all", loser, loser)); !errors.Is(err, arbiter.ErrRefused) {
				t.Errorf("the loser follows with a change of its own: %v", err)
			}
		})
	}
}

func orPlain(mode string) string {
	if mode == "" {
		return "answered"
	}
	return mode
}
