//go:build mutants

package query_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// caught ends a comparison that failed.
type caught struct{ why string }

type catcher struct{}

func (catcher) Fatal(a ...any)            { panic(caught{fmt.Sprint(a...)}) }
func (catcher) Fatalf(f string, a ...any) { panic(caught{fmt.Sprintf(f, a...)}) }

// TestMutantsAreCaught breaks the view in each way there is: random questions have to find
// it. Unbroken they find nothing.
func TestMutantsAreCaught(t *testing.T) {
	defer view.SelectMutant("")
	for _, m := range append([]view.Mutant{{Name: "none"}}, view.Mutants()...) {
		view.SelectMutant(m.Name)
		asked, why := untilCaught(t, 1500)
		if (why == "") != (m.Name == "none") {
			t.Errorf("%s (%s): after %d questions: %q", m.Name, m.Breaks, asked, why)
		}
		t.Logf("%-16s caught by question %d: %.100s", m.Name, asked, why)
	}
}

func untilCaught(t *testing.T, most int) (asked int, why string) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case caught:
			why = r.why
		default:
			panic(r)
		}
	}()
	r := rand.New(rand.NewPCG(7, 7))
	cases := someCases(t)
	for ; asked < most; asked++ {
		one(catcher{}, r, cases)
	}
	return asked, ""
}
