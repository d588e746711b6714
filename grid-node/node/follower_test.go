package node

import (
	"testing"
	"time"
)

// TestStreamOfASinkCollects: after a frame that was not full, the stream of a reader of the configuration waits for
// more. Other streams do not, nor does one with a backlog, nor the first frame.
func TestStreamOfASinkCollects(t *testing.T) {
	told := time.Now()
	for what, c := range map[string]struct {
		w     *follower
		after time.Duration
		want  time.Duration
	}{
		"a sink":                    {&follower{name: "kafka", begun: true, toldAt: told}, 0, collect},
		"a sink that has waited":    {&follower{name: "kafka", begun: true, toldAt: told}, collect, 0},
		"a sink, some time on":      {&follower{name: "kafka", begun: true, toldAt: told}, collect / 4, collect - collect/4},
		"a sink with a backlog":     {&follower{name: "kafka", begun: true, toldAt: told, full: true}, 0, 0},
		"the first frame of a sink": {&follower{name: "kafka", toldAt: told}, 0, 0},
		"a gateway":                 {&follower{begun: true, toldAt: told}, 0, 0},
	} {
		if got := c.w.collects(told.Add(c.after)); got != c.want {
			t.Errorf("%s waits %v, want %v", what, got, c.want)
		}
	}
}
