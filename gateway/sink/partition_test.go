package sink

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Follow and Advance both find out that the target holds another history, and either may be answered first.
func TestOtherHistoryIsPermanent(t *testing.T) {
	p := &partition{id: 3, r: &Runner{}}
	held := client.Position{Seq: 20, Hash: 0xbad, Lineage: 1}
	for name, err := range map[string]error{
		"Follow":  &client.DivergedError{Hash: 0x600d},
		"Advance": fmt.Errorf("client: advance: %w", &client.RejectError{Code: wire.CodeDiverged, Detail: 0x600d}),
	} {
		var permanent *PermanentError
		if got := p.explain(err, held); !errors.As(got, &permanent) {
			t.Errorf("%s: %v, want a permanent error", name, got)
		} else if want := "hash 0000000000000bad of lineage 1, and the grid's log has hash 000000000000600d there"; !strings.Contains(permanent.What, want) {
			t.Errorf("%s: %q, want %q in it", name, permanent.What, want)
		}
	}
}
