package node

import (
	"time"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// alarmLog keeps repeated messages from flooding the log: one a second per key.
// Counters count every one.
type alarmLog struct {
	last map[string]int64
}

// maxAlarmKeys are remembered: clients have names of their own.
const maxAlarmKeys = 1024

const alarmInterval = int64(time.Second)

func (a *alarmLog) limited(now int64, key string, f func()) {
	if a.last == nil {
		a.last = map[string]int64{}
	}
	if last, seen := a.last[key]; seen && now-last < alarmInterval {
		return
	}
	if len(a.last) >= maxAlarmKeys {
		clear(a.last)
	}
	a.last[key] = now
	f()
}

// alarm counts, logs and raises a Kubernetes Event.
func (p *partition) alarm(kind replica.AlarmKind, text string) {
	p.counters.Alarm(string(kind))
	p.limited(p.record.name+string(kind), func() {
		warning := kind != replica.AlarmTakeOver && kind != replica.AlarmHandOver && kind != replica.AlarmRetired
		if warning {
			p.log.Warn("alarm", "partition", p.id.String(), "alarm", string(kind), "text", text)
		} else {
			p.log.Info("alarm", "partition", p.id.String(), "alarm", string(kind), "text", text)
		}
		if p.cfg.Recorder != nil {
			p.cfg.Recorder.Event(p.record.name, string(kind), text, warning)
		}
	})
}
