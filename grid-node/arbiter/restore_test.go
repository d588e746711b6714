package arbiter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
)

// TestFirstClaimOfRestored: a record with a recovery point is claimed at the epoch and the lineage behind it, and at
// no other.
func TestFirstClaimOfRestored(t *testing.T) {
	a := arbiter.Member{ID: "g-s0-0/000000000000000a", PodName: "g-s0-0", BootID: "000000000000000a", Address: "10.0.0.1:7400"}
	b := arbiter.Member{ID: "g-s0-1/000000000000000b", PodName: "g-s0-1", BootID: "000000000000000b", Address: "10.0.0.2:7400"}
	old := arbiter.Record{Name: "g-p0", Spec: arbiter.Spec{Restore: &arbiter.Restore{Seq: 9, Hash: "00000000000000ff", Epoch: 6, Lineage: 2}}}
	claim := func(epoch, lineage uint64, in ...arbiter.Member) arbiter.Record {
		return arbiter.Record{Name: "g-p0", Epoch: epoch, Lineage: lineage, ChangeID: "x", Primary: a, InSync: in}
	}
	for _, c := range []struct {
		name    string
		next    arbiter.Record
		refused string
	}{
		{"behind the recovery point", claim(7, 3, a), ""},
		{"nothing", arbiter.Record{Name: "g-p0"}, ""},
		{"as if it were empty", claim(1, 1, a), "restored from an archive of epoch 6; propose epoch 7"},
		{"the epoch of the archive", claim(6, 3, a), "propose epoch 7"},
		{"the lineage of the archive", claim(7, 2, a), "set lineage to 3"},
		{"a later lineage", claim(7, 4, a), "set lineage to 3"},
		{"with a second member", claim(7, 3, a, b), "inSync has 2 members at the first claim"},
	} {
		err := arbiter.CheckTransition(old, c.next)
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.refused != "" && (!errors.Is(err, arbiter.ErrRefused) || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%s: %v, want a refusal with %q", c.name, err, c.refused)
		}
	}
	next := claim(8, 3, a, b)
	stands := claim(7, 3, a)
	stands.Spec = old.Spec
	if err := arbiter.CheckTransition(stands, next); err != nil {
		t.Errorf("an admission after the claim: %v", err)
	}
	if next.Epoch = 7; arbiter.CheckTransition(stands, next) == nil {
		t.Error("epoch 7 was changed after the claim")
	}
}

func TestRestoreCheck(t *testing.T) {
	good := arbiter.Restore{Seq: 9, Hash: "00000000000000ff", Epoch: 6, Lineage: 2}
	if err := good.Check(); err != nil || good.HashValue() != 255 {
		t.Fatalf("%v, hash %d", err, good.HashValue())
	}
	for name, r := range map[string]arbiter.Restore{
		"no entry":      {Hash: good.Hash, Epoch: 6, Lineage: 2},
		"no epoch":      {Seq: 9, Hash: good.Hash, Lineage: 2},
		"no lineage":    {Seq: 9, Hash: good.Hash, Epoch: 6},
		"no hash":       {Seq: 9, Epoch: 6, Lineage: 2},
		"a short hash":  {Seq: 9, Hash: "ff", Epoch: 6, Lineage: 2},
		"upper case":    {Seq: 9, Hash: "00000000000000FF", Epoch: 6, Lineage: 2},
		"the last ones": {Seq: 9, Hash: good.Hash, Epoch: 1<<32 - 1, Lineage: 2},
	} {
		if r.Check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
