package command

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

func TestPrinter(t *testing.T) {
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var out bytes.Buffer
	p := newAt(&out, func() time.Time { return clock })
	boom := errors.New("boom")

	if err := p.Run("nodes on", func() error { clock = clock.Add(1234 * time.Millisecond); return nil }); err != nil {
		t.Fatal(err)
	}
	err := p.Run("nodes ready", func() error { clock = clock.Add(30 * time.Millisecond); return boom })
	if !errors.Is(err, boom) || err.Error() != "nodes ready: boom" {
		t.Errorf("error is %v", err)
	}
	want := "    1.2s  nodes on (1.2s)\n    1.3s  nodes ready: failed after 30ms\n"
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", &out, want)
	}
}
