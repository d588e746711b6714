package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/instrument"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// TestCalendarOfAGrid: nodes with a calendar bring their books into the phase of the present day, the page tells so, and a
// primary that takes over does not do it again.
func TestCalendarOfAGrid(t *testing.T) {
	g := newGrid(t, 2, 1)
	file := filepath.Join(t.TempDir(), "instruments.json")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	write(file, `[{"symbol":"IBM","tick":"1","lot":"1","low":"0","high":"1000"}]`)
	zone := "UTC" // one in which it is about noon
	if ahead := 12 - time.Now().UTC().Hour(); ahead != 0 {
		zone = fmt.Sprintf("Etc/GMT%+d", -ahead)
	}
	calendar := func(generation int, state string) { // one phase that has begun today, and every day
		write(file+instrument.CalendarFileName, fmt.Sprintf(`{"timeZone":"%s","days":["Monday","Tuesday","Wednesday","Thursday","Friday","Saturday","Sunday"],"phases":[{"at":"00:00","state":"%s"}],
			"source":{"grid":"g","object":"s","sinceMs":1795435380000,"generation":%d}}`, zone, state, generation))
	}
	calendar(1, "closed")
	for i := range 2 {
		f, err := instrument.Open(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := instrument.OpenCalendar(file+instrument.CalendarFileName, nil)
		if err != nil {
			t.Fatal(err)
		}
		g.base.Execution = &Execution{File: f, Calendar: c}
		g.start(i)
	}
	g.ready()
	c := g.client()
	state := func() client.BookState {
		b, err := c.ReadBook(t.Context(), "IBM", 1, "")
		if err != nil {
			return client.BookState(255)
		}
		return b.State
	}
	g.until(func() bool { return state() == client.BookClosed }, "the book is in state %v", func() any { return state() })
	page := func(i int) (s nodestatus.Calendar) {
		_ = g.nodes[i].onLoop(func() { s = *g.nodes[i].data.parts.calendarFollowed() })
		return s
	}
	g.until(func() bool { s := page(0); return s.Books == 1 && s.Behind == 0 }, "the page has %+v", func() any { return page(0) })
	if s := page(0); s.Phase != "closed" || s.Next != "closed" || s.NextUnixNs-s.PhaseUnixNs != int64(24*time.Hour) || s.Error != "" || len(s.Waits) > 0 || len(s.SHA256) != 64 {
		t.Errorf("the page has %+v", s)
	}
	// A person opens it: the phase has begun, and is not done again by the next primary.
	if _, _, err := c.Market(t.Context(), client.MarketOp{Symbol: "IBM", State: client.BookOpen, Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	g.kill(0)
	g.until(func() bool { return page(1).Books == 1 }, "node 1 does not take over: %+v", func() any { return page(1) })
	g.until(func() bool {
		_, err := c.Submit(t.Context(), traded("35=D 11=o 55=IBM 54=1 38=1 40=2 44=5"))
		return err == nil
	}, "no order is taken")
	if s := state(); s != client.BookOpen {
		t.Errorf("behind the take-over the book is in state %v", s)
	}
	write(file+instrument.CalendarFileName, `{"phases":[{"at":"9","state":"open"}]}`)
	g.until(func() bool { return strings.Contains(page(1).Error, `at is "9"`) }, "the page has %+v", func() any { return page(1) })
}
