package client_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// TestGridLimits: a file of limits comes into force on a grid of processes and is changed;
// a trader is killed, also behind the primary that took it, and taken again.
func TestGridLimits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"traderTag":50,"maxOrderVolume":"100"}`)
	g := testgrid.Run(t, "--partitions", "1", "--limits", file)
	c := dial(t, g)
	waitForRedundancy(t, c)
	s, err := c.Session(0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	send := func(trader string, qty int) error {
		n++
		_, err := s.Submit(t.Context(), message(fmt.Sprintf("35=D 11=o%d 50=%s 55=IBM 54=1 38=%d 40=2 44=1", n, trader, qty)))
		return err
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for range 600 {
			if ok() {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatal("not within 30 s: " + what)
	}
	until("the limit is in force", func() bool { return errors.Is(send("ann", 101), client.ErrLimitRefused) })
	var reject *client.RejectError
	if err := send("ann", 101); !errors.As(err, &reject) || reject.Detail != 3 || !strings.Contains(reject.Text, `maxOrderVolume: quantity is above the limit: quantity "101", allowed: 100`) {
		t.Errorf("an order beyond the limit: %v", err)
	}
	if err := send("ann", 100); err != nil {
		t.Error(err)
	}
	write(`{"traderTag":50,"maxOrderVolume":"200"}`)
	until("the new limit is in force", func() bool { return send("ann", 200) == nil })

	kill := client.Kill{Scope: order.GuardTrader, Name: "ann", Why: "drill", Who: "bob"}
	first, err := c.Kill(t.Context(), kill)
	if err != nil || len(first) != 1 || first[0].Was {
		t.Fatalf("kill: %+v, %v", first, err)
	}
	if again, err := c.Kill(t.Context(), kill); err != nil || !again[0].Was {
		t.Errorf("kill again: %+v, %v", again, err)
	}
	if err := send("ann", 1); !errors.Is(err, client.ErrLimitRefused) || !strings.Contains(err.Error(), "killed by unauthenticated bob") {
		t.Errorf("an order of a killed trader: %v", err)
	}
	if err := send("eve", 1); err != nil {
		t.Error(err)
	}
	before := c.Table()[0].Epoch
	pid, err := g.PIDOf(c.Table()[0].Primary.Address)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until("another primary serves", func() bool {
		return c.Refresh(t.Context()) == nil && c.Table()[0].Epoch > before && send("eve", 1) == nil
	})
	if err := send("ann", 1); !errors.Is(err, client.ErrLimitRefused) {
		t.Errorf("an order of a killed trader, behind a take-over: %v", err)
	}
	all, err := c.Limits(t.Context())
	if err != nil || len(all) != 1 || len(all[0].Kills) != 1 || all[0].Kills[0].Entry != first[0].Entry || all[0].Kills[0].Why != "drill" {
		t.Errorf("limits are %+v, %v", all, err)
	}
	until("the new primary has read the file, too", func() bool { // it may be behind the one before, and says so in the log
		all, err := c.Limits(t.Context())
		return err == nil && all[0].Profile == `{"traderTag":50,"maxOrderVolume":"200"}`
	})
	if _, err := c.Unkill(t.Context(), kill); err != nil {
		t.Fatal(err)
	}
	if err := send("ann", 1); err != nil {
		t.Error(err)
	}
	if _, err := c.Kill(t.Context(), client.Kill{Scope: order.GuardSession, Name: "7", Why: "drill", Who: "bob"}); !errors.Is(err, client.ErrUnsupported) {
		t.Errorf("a kill of a session that is none: %v", err)
	}
}
