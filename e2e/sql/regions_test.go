package sql

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
)

var regionCols = []col{
	{"key", "text", []string{"ACC1/IBM", "ACC2/a", "ACC", "acc1/ibm", "ACC9/A%", "x", "", "ACC3/A_B"}},
	{"value", "text", []string{"100", "1", "", "Z", "a b", "99"}},
	{"version", "int", []string{"1", "7", "500", "0", "-1", "7.5", "9223372036854775808"}},
	{"partition", "int", []string{"0", "1", "2", "0.5"}},
	{"expires", "time", []string{"2026-11-21 09:30:00+00", "2099-01-01", "2100-01-01 00:00:00.5+00"}},
}

// entries makes random statements about a region.
func (a *asker) entries() string {
	a.args = nil
	var list []string
	if a.r.IntN(5) == 0 {
		list = []string{"*"}
	}
	for range a.r.IntN(4) {
		c := a.column("")
		switch n := a.r.IntN(10); {
		case n == 0 && c.class != "time":
			list = append(list, c.name+"::text")
		case n == 1:
			list = append(list, c.name+" AS x", "2.50")
		case n == 2:
			list = append(list, "positions."+c.name)
		default:
			list = append(list, c.name)
		}
	}
	if len(list) == 0 {
		list = []string{"key"}
	}
	s := "SELECT " + strings.Join(list, ", ") + " FROM regions.positions"
	if a.r.IntN(3) > 0 {
		return s + a.where()
	}
	s += " WHERE " + a.path()
	if a.r.IntN(2) == 0 {
		s += pick(a.r, []string{" AND ", " AND NOT ", " OR "}) + "(" + a.condition(2) + ")"
	}
	return s
}

// path is a condition from which follows what is read.
func (a *asker) path() string {
	c := regionCols[0]
	switch a.r.IntN(4) {
	case 0:
		return "key = " + a.constant(c)
	case 1:
		return "key IN (" + a.constant(c) + ", " + a.constant(c) + ")"
	case 2:
		return "key LIKE 'ACC1%'"
	}
	return "'ACC2/a' = key"
}

// TestEntriesAreThoseOfPostgreSQL asks both random statements about the same entries of a region.
func TestEntriesAreThoseOfPostgreSQL(t *testing.T) {
	p := postgres(t)
	w := start(t, 1)
	seed := uint64(number("ORDERGRID_SEED", int(rand.Uint32())))
	t.Logf("ORDERGRID_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 5))
	region := w.client.Region("positions")
	for i := range 400 {
		var opts []client.PutOption
		if i%3 == 0 {
			opts = append(opts, client.Expires(time.Duration(100+i)*time.Hour))
		}
		key := fmt.Sprintf("ACC%d/%s", i%12, symbols[i%len(symbols)])
		if _, err := region.Put(t.Context(), []byte(key), []byte(pick(r, regionCols[1].values)), opts...); err != nil {
			t.Fatal(err)
		}
	}
	ours, theirs := open(t, w.dsn()), open(t, p.Admin())
	if _, err := ours.Exec(t.Context(), "set ordergrid.linearizable to on"); err != nil {
		t.Fatal(err)
	}
	if n := copyEntries(t, ours, theirs); n != 132 {
		t.Fatalf("%d entries, want 132", n)
	}
	counts := askBoth(t, ours, theirs, func(n int) (string, *asker) {
		a := &asker{r: r, bind: n%2 == 1, of: regionCols}
		return a.entries(), a
	})
	if counts["rows"] < 500 || counts["refused"]*10 > counts["rows"] {
		t.Errorf("%v: the statements test nothing, or too many are refused", counts)
	}
}
