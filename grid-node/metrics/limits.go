package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/grid-node/limits"
)

var (
	limitRefusals = desc("limit_refusals_total", "Orders that a limit refused, by the rule of the profile that did, killSwitch for kills; counted by the primary. Absent without limits.", "partition", "rule")
	limitKills    = desc("limit_kills", "Kills in effect, as far as the log is committed here; absent without limits.", "partition")

	limitDescs = []*prometheus.Desc{limitRefusals, limitKills}
)

// limits emits what a partition's limits did, if its log has any.
func (e emitter) limits(p *Partition) {
	if !p.Limited {
		return
	}
	e.gauge(limitKills, float64(p.Kills), p.Name)
	byRule := map[string]uint64{}
	var rules []string // each once, in the order of reasons
	for r := limits.None + 1; int(r) < limits.Reasons; r++ {
		rule := r.Rule()
		if _, known := byRule[rule]; !known {
			rules = append(rules, rule)
		}
		byRule[rule] += p.Counters.LimitRefusals[r]
	}
	for _, rule := range rules {
		e.counter(limitRefusals, byRule[rule], p.Name, rule)
	}
}
