package arbiter_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/arbitertest"
)

func TestCheckTransition(t *testing.T) {
	for _, c := range arbitertest.Transitions() {
		t.Run(c.Name, func(t *testing.T) {
			err := arbiter.CheckTransition(c.Old, c.New)
			switch {
			case c.Refused == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case c.Refused != "" && err == nil:
				t.Fatalf("allowed, want a refusal with %q", c.Refused)
			case err != nil && (!errors.Is(err, arbiter.ErrRefused) || !strings.Contains(err.Error(), c.Refused)):
				t.Fatalf("refused with %v, want %q", err, c.Refused)
			}
		})
	}
}
