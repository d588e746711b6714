package node

import (
	"strings"
	"testing"
)

func TestRetentionOfConfig(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string // "" for none
	}{
		{Config{Retention: RetentionKeepAll, HighWatermark: 80, Sink: SinkHold}, ""},
		{Config{Retention: RetentionFreeDownstream, HighWatermark: 20, Sink: SinkFile}, ""},
		{Config{Retention: RetentionFreeDownstream, HighWatermark: 80, Sink: SinkHold}, "nothing is downstream"},
		{Config{Retention: "all", HighWatermark: 80}, `--retention: value "all", allowed: keep-all, free-downstream`},
		{Config{Retention: RetentionKeepAll, HighWatermark: 96}, "--high-watermark: value 96, allowed: 20..95"},
	} {
		err := c.cfg.checkRetention()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
		if r := c.cfg.retention(1 << 30); r.Low >= r.High || r.High > r.Critical || r.Critical > 1<<30 {
			t.Errorf("%d %%: %+v", c.cfg.HighWatermark, r)
		}
	}
}
