package operations

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/load"
)

// run is ten seconds of 1,000 orders a second that take 1 ms; in the fourth second 2 % take 50 ms, in the fifth three fail.
func run() *history.History {
	const began = int64(5 * time.Second)
	h := &history.History{StartedAt: began, Rate: 1000, Replicas: 2, Streams: []history.Stream{{Node: -1}, {Node: 0}}}
	for i := range 10_000 {
		o := load.Order{T1: began + int64(i)*int64(time.Millisecond), Fate: load.Acked}
		o.T3 = o.T1 + int64(time.Millisecond)
		switch {
		case i/1000 == 3 && i%50 == 0:
			o.T3 = o.T1 + int64(50*time.Millisecond)
		case i/1000 == 4 && i%300 == 0:
			o.Fate = load.Unknown
		}
		h.Streams[0].Orders = append(h.Streams[0].Orders, o)
	}
	// One that asked a node which is not primary, and orders with times that cannot be.
	h.Streams[1].Orders = []load.Order{{T1: began, Fate: load.Rejected}}
	h.Streams[0].Orders = append(h.Streams[0].Orders, load.Order{T1: 0}, load.Order{T1: 1 << 62})
	h.Reps = []history.Rep{{What: "every pod <gets> another template", From: began + int64(3*time.Second), To: began + int64(3*time.Second), Healed: began + int64(5*time.Second), Redundant: began + int64(6*time.Second)}}
	h.Drill = &history.Drill{Faults: []history.Fault{{Changes: []history.Change{{Cause: "hand-over", Accepted: began + int64(3500*time.Millisecond)}, {Cause: "hand-over"}}, Witness: api.Witness{}}}}
	return h
}

func TestCourse(t *testing.T) {
	c := CourseOf(run(), "rolling update", time.Second)
	if len(c.Moments) != 10 || c.Created != 10_000 || c.Failed != 3 {
		t.Fatalf("%d moments, %d orders, %d failed", len(c.Moments), c.Created, c.Failed)
	}
	for i, m := range c.Moments {
		p99, worst, failed := time.Millisecond, time.Millisecond, int64(0)
		if i == 3 {
			p99, worst = 50*time.Millisecond, 50*time.Millisecond
		}
		if i == 4 {
			failed = 3
		}
		if m.At != time.Duration(i)*time.Second || m.Orders != 1000 || m.Failed != failed || m.P50 != time.Millisecond || m.P99 != p99 || m.Max != worst {
			t.Errorf("second %d: %+v", i, m)
		}
	}
	a := c.Acts[0]
	if len(c.Acts) != 1 || a.From != 3*time.Second || a.To != 5*time.Second || a.Redundant != 6*time.Second || len(a.Changes) != 1 || a.Changes[0] != 3500*time.Millisecond {
		t.Errorf("acts %+v", c.Acts)
	}
}

func TestDraw(t *testing.T) {
	c := CourseOf(run(), "rolling update", time.Second)
	d := Draw(c).Titled(c.Title, "below")
	var svg, pixels bytes.Buffer
	if err := d.SVG(&svg); err != nil {
		t.Fatal(err)
	}
	for dec := xml.NewDecoder(bytes.NewReader(svg.Bytes())); ; {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"every pod &lt;gets&gt; another template (3.0 s)", "3 failed", "50 ms", "1 ms"} {
		if !strings.Contains(svg.String(), want) {
			t.Errorf("the drawing does not say %q", want)
		}
	}
	if err := d.PNG(&pixels, 1); err != nil {
		t.Fatal(err)
	}
	if img, err := png.Decode(&pixels); err != nil || img.Bounds().Dx() != int(width) {
		t.Errorf("picture %v, %v", img, err)
	}
	for _, h := range []*history.History{{}, {Streams: []history.Stream{{Node: -1, Orders: []load.Order{{}}}}}} { // nothing, or nothing acknowledged
		if err := Draw(CourseOf(h, "", time.Second)).SVG(io.Discard); err != nil {
			t.Error(err)
		}
	}
}
