package witness

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
)

// Every type of the API has a row in the table of makers, and one in that of witnesses.
func TestEveryTypeHasItsRows(t *testing.T) {
	source, err := os.ReadFile("../../../api/v1alpha1/drillfault_types.go")
	if err != nil {
		t.Fatal(err)
	}
	enum := regexp.MustCompile(`Enum=(PodKill;\S+)`).FindSubmatch(source)
	if enum == nil {
		t.Fatal("no enum of DrillFaultType")
	}
	var want []api.DrillFaultType
	for name := range strings.SplitSeq(string(enum[1]), ";") {
		want = append(want, api.DrillFaultType(name))
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(eyes)); !slices.Equal(got, want) {
		t.Errorf("witnesses: %v, want %v", got, want)
	}
	if got := inject.Types(); !slices.Equal(got, want) {
		t.Errorf("makers: %v, want %v", got, want)
	}
}
