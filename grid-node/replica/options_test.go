package replica_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/store"
)

func TestNewRefuses(t *testing.T) {
	self, err := replica.NewMember("g-s0-0/00000000000000a1", "10.0.0.1:7400")
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.New(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for want, change := range map[string]func(o *replica.Options){
		"self is":                            func(o *replica.Options) { o.Self = replica.Member{} },
		"no store":                           func(o *replica.Options) { o.Store = nil },
		"replicas 4, minInSync 1":            func(o *replica.Options) { o.Replicas = 4 },
		"replicas 2, minInSync 3":            func(o *replica.Options) { o.MinInSync = 3 },
		"lease is 30ms, allowed: at least":   func(o *replica.Options) { o.Timing.Lease = 30 * time.Millisecond },
		"grace is 200ms, allowed: more than": func(o *replica.Options) { o.Timing.Grace = 200 * time.Millisecond },
		"claimDelay -1s":                     func(o *replica.Options) { o.Timing.ClaimDelay = -time.Second },
		"maxPayload is 65473":                func(o *replica.Options) { o.Limits.MaxPayload = 65473 },
		"window is 3, allowed: a power":      func(o *replica.Options) { o.Limits.Window = 3 },
		"batchBytes is 1, allowed: 65536":    func(o *replica.Options) { o.Limits.BatchBytes = 1 },
		"sessions -1":                        func(o *replica.Options) { o.Limits.Sessions = -1 },
	} {
		o := replica.Options{Self: self, Store: st}
		change(&o)
		if _, err := replica.New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := replica.New(replica.Options{Self: self, Store: st}); err != nil {
		t.Errorf("defaults: %v", err)
	}
	if self.Pod() != "g-s0-0" {
		t.Errorf("pod %q", self.Pod())
	}
}

// TestBadConfigurations gives a replica invalid records: each is rejected with an alarm
// that gives the reason, and changes nothing.
func TestBadConfigurations(t *testing.T) {
	a, _ := replica.NewMember("a/0000000000000a01", "10.0.0.1:7400")
	b, _ := replica.NewMember("b/0000000000000b01", "10.0.0.2:7400")
	c, _ := replica.NewMember("c/0000000000000c01", "10.0.0.3:7400")
	for want, cfg := range map[string]*replica.Config{
		"epoch is 4294967296":                   {Epoch: 1 << 32, Primary: a, InSync: []replica.Member{a}},
		"inSync has 0 members":                  {Epoch: 1, Primary: a},
		"inSync has 5 members":                  {Epoch: 1, Primary: a, InSync: []replica.Member{a, b, c, a, b}},
		`primary is ""`:                         {Epoch: 1, InSync: []replica.Member{a}},
		"primary b/0000000000000b01 is not in":  {Epoch: 1, Primary: b, InSync: []replica.Member{a}},
		"inSync names a/0000000000000a01 twice": {Epoch: 1, Primary: a, InSync: []replica.Member{a, b, a}},
	} {
		st, err := store.New(store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := replica.New(replica.Options{Self: a, Store: st})
		if err != nil {
			t.Fatal(err)
		}
		var out replica.Outbox
		r.Step(replica.Time{Mono: 1}, &replica.Event{Kind: replica.EventConfig, Config: cfg, Fresh: true}, &out)
		if len(out.Actions) != 1 || out.Actions[0].Alarm != replica.AlarmBadConfig || !strings.Contains(out.Actions[0].Text, want) {
			t.Errorf("want %q: %+v", want, out.Actions)
		}
		if s := r.Status(); s.Role != replica.RoleIdle || s.Config != nil {
			t.Errorf("%q: the replica is %s", want, s.Role)
		}
		st.Close()
	}
}
