package gateway

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/fix/counterparty"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/fix/roster"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// TestFix50Trades: two engines of FIX 5.0 SP2, which check what they get by its dictionaries, trade
// before a grid that matches: every message of a book is one of that version.
func TestFix50Trades(t *testing.T) {
	g := testgrid.Matching(t)
	dir := t.TempDir()
	sessions := map[string][]roster.Entry{}
	for _, name := range []string{"A", "B"} {
		sessions["sessions"] = append(sessions["sessions"], roster.Entry{Version: "FIXT.1.1", SenderCompID: name, TargetCompID: "GRID", Username: "user", PasswordFile: "password", Segment: "IBM"})
	}
	file, err := json.Marshal(sessions)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"password": "right\n", "sessions.json": string(file)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := proc.PortForTest(t)
	downstream.Run(t, "order-gateway", "--listen", address, "--sessions", filepath.Join(dir, "sessions.json"), "--fix-insecure-plain", "--http", "", "--endpoint", strings.Join(g.Endpoints, ","))
	engine := func(name string) *counterparty.Initiator {
		i, err := counterparty.Start(fix50(t, counterparty.Options{Sender: name, Target: "GRID", Address: address, User: "user", Password: "right"}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(i.Stop)
		if err := i.Wait(time.Minute, func(s counterparty.Seen) bool { return s.LoggedOn }); err != nil {
			t.Fatal(err)
		}
		return i
	}
	a, b := engine("A"), engine("B")
	send := func(i *counterparty.Initiator, kind string, fields map[int]string) {
		t.Helper()
		if err := i.Send(kind, fields); err != nil {
			t.Fatal(err)
		}
	}
	reports := func(i *counterparty.Initiator, clOrdID string, want ...string) {
		t.Helper()
		if err := i.Wait(time.Minute, func(s counterparty.Seen) bool { return slices.Equal(s.Reports[clOrdID], want) }); err != nil {
			t.Fatalf("reports %q of %s: %v", want, clOrdID, err)
		}
	}
	others := func(i *counterparty.Initiator, n int, kind string) {
		t.Helper()
		if err := i.Wait(time.Minute, func(s counterparty.Seen) bool { return len(s.Refused) == n && strings.HasPrefix(s.Refused[n-1], kind) }); err != nil {
			t.Fatalf("message %d of type %s: %v", n, kind, err)
		}
	}
	send(a, "D", map[int]string{11: "x", 1: "ACCT", 55: "IBM", 54: "2", 38: "100", 40: "2", 44: "125.10"})
	reports(a, "x", "0")
	send(b, "D", map[int]string{11: "x", 55: "IBM", 54: "1", 38: "60", 40: "2", 44: "125.20", 59: "3"})
	reports(b, "x", "0", "F")
	reports(a, "x", "0", "F")
	send(a, "G", map[int]string{11: "y", 41: "x", 55: "IBM", 54: "2", 38: "120", 40: "2", 44: "125.30"})
	reports(a, "y", "5")
	send(a, "H", map[int]string{11: "y", 55: "IBM", 54: "2", 790: "q"})
	reports(a, "y", "5", "I")
	send(a, "F", map[int]string{11: "z", 41: "x", 55: "IBM", 54: "2", 38: "100"}) // it is y by now
	others(a, 1, "9 ")
	send(a, "D", map[int]string{11: "tick", 55: "IBM", 54: "2", 38: "1", 40: "2", 44: "125.11"})
	others(a, 2, "8 ")
	send(a, "D", map[int]string{11: "crossing", 55: "IBM", 54: "2", 38: "1", 40: "2", 44: "125.30", 59: "9"}) // of FIX 5.0 SP2, not of a book
	others(a, 3, "8 tag 59")
	send(a, "q", map[int]string{11: "m1", 530: "7"})
	others(a, 4, "r ")
	reports(a, "y", "5", "I", "4")
	send(a, "q", map[int]string{11: "m2", 530: "3", 167: "CS"})
	others(a, 5, "r ")
	for name, i := range map[string]*counterparty.Initiator{"A": a, "B": b} {
		if s := i.Seen(); len(s.Rejects) > 0 || s.Logons != 1 {
			t.Errorf("%s: %d logons, Rejects: %q", name, s.Logons, s.Rejects)
		}
	}
}
