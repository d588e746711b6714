package limits

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/ordergrid/ordergrid/internal/race"
)

// TestOracle compares the answers with those of the oracle, for operations of 60 seeds
// (ORDERGRID_LIMITS_SEEDS for more), 600 each; of some of them under the race detector.
func TestOracle(t *testing.T) {
	seeds := 60
	if n, err := strconv.Atoi(os.Getenv("ORDERGRID_LIMITS_SEEDS")); err == nil {
		seeds = n
	}
	if race.Enabled {
		seeds = 5
	}
	saw := map[Reason]int{}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(uint64(seed), 23))
		if err := compare(t, &flow{draw: random.IntN}, 600, saw); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	for r := None; r < reasons && !race.Enabled; r++ {
		if saw[r] == 0 {
			t.Errorf("no operation with %q in %d seeds", r, seeds)
		}
	}
}

// TestOracleProperty is the same under a generator that shrinks what fails.
func TestOracleProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := &flow{draw: func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "n") }}
		if err := compare(t, f, rapid.IntRange(1, 60).Draw(rt, "operations"), map[Reason]int{}); err != nil {
			rt.Fatal(err)
		}
	})
}

// compare runs limits and oracle side by side.
func compare(t testing.TB, f *flow, steps int, saw map[Reason]int) (err error) {
	l, x := newFlow(t), newOracle(flowConfig)
	both := func(op *Op, c *Change) Reason {
		if err != nil {
			return None
		}
		var got, want Reason
		before, used := l.Digest(), credits(l)
		if c != nil {
			got, want = l.Change(c), x.change(*c)
		} else {
			check := l.Check(op)
			if l.Digest() != before {
				err = fmt.Errorf("%+v: Check changed the state", *op)
			}
			got, want = l.Apply(op), x.apply(*op)
			if op.Kind <= Cancel && check != got {
				err = fmt.Errorf("%+v: Check gives %q, Apply %q", *op, check, got)
			}
		}
		saw[got]++
		if got != want {
			err = fmt.Errorf("%+v %+v: %q, want %q", op, c, got, want)
		}
		if e := agree(l, x, used); e != nil && err == nil {
			err = fmt.Errorf("%+v %+v: %w", op, c, e)
		}
		return want
	}
	for _, c := range f.setup() {
		both(nil, &c)
	}
	f.run(t, steps, both)
	return err
}

func newFlow(t testing.TB) *Limits {
	l, err := New(flowConfig)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func credits(l *Limits) (used []int64) {
	for n := range l.clients {
		_, u := l.Credit(uint32(n))
		used = append(used, u)
	}
	return used
}

// agree compares what is maintained with what there is, and holds the invariant: no credit
// is used that is not here.
func agree(l *Limits, x *oracle, before []int64) error {
	if l.Digest() != l.Recount() {
		return fmt.Errorf("digest %x, recount %x", l.Digest(), l.Recount())
	}
	if l.Open() != len(x.orders) || l.now != x.now {
		return fmt.Errorf("%d orders at %d, want %d at %d", l.Open(), l.now, len(x.orders), x.now)
	}
	for n := range before {
		here, used := l.Credit(uint32(n))
		want := int64(0)
		if c := x.credit[uint32(n)]; c != nil {
			want = c.here
		}
		if used != before[n] && x.used(uint32(n)).Cmp(number(used)) != 0 || here != want {
			return fmt.Errorf("client %d uses %d of %d, want %v of %d", n, used, here, x.used(uint32(n)), want)
		}
		if used > before[n] && used > here {
			return fmt.Errorf("client %d uses %d of %d, before it %d", n, used, here, before[n])
		}
	}
	return nil
}
