package witness

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
)

func testGrid() *api.OrderGrid {
	g := &api.OrderGrid{ObjectMeta: metav1.ObjectMeta{Namespace: "trading", Name: "g"}, Spec: api.OrderGridSpec{Shards: 2, Replicas: 2}}
	g.Spec.Timing.BeaconInterval, g.Spec.Timing.Lease = lasts(20*time.Millisecond), lasts(200*time.Millisecond)
	return g
}

func lasts(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

func hitting(spec api.DrillFault, pods ...string) *inject.Fault {
	f := &inject.Fault{Drill: inject.Drill{Namespace: "trading", Name: "night"}, Spec: spec, Grid: testGrid(), Nodes: []string{"node-a"}}
	for _, name := range pods {
		f.Pods = append(f.Pods, podNamed(name))
	}
	return f
}

func podNamed(name string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "trading", Name: name}, Spec: corev1.PodSpec{NodeName: "node-a"}}
}

func toPeers(f *inject.Fault, peers ...string) *inject.Fault {
	for _, name := range peers {
		f.Peers = append(f.Peers, podNamed(name))
	}
	return f
}

// link from one pod to the other, with a change.
func link(from, to string, change func(*linkSight)) linkSight {
	l := linkSight{From: from, To: to, Boot: "b-" + from, Kind: "peer", Ends: from + ">" + to, Interface: "net1", RTT: 200_000, Quiet: 5_000_000}
	if change != nil {
		change(&l)
	}
	return l
}

// both ends of the connection between g-s0-0 and g-s0-1.
func both(change func(*linkSight)) *sight {
	return &sight{Links: []linkSight{link("g-s0-0", "g-s0-1", change), link("g-s0-1", "g-s0-0", nil)},
		Boots: map[string]string{"g-s0-0": "b-g-s0-0", "g-s0-1": "b-g-s0-1"}}
}

type verdictOf struct {
	fault       *inject.Fault
	before, now *sight
	seen        bool
	says        string
}

func judgeAll(t *testing.T, judge func(*inject.Fault, *sight, *sight) Result, cases map[string]verdictOf) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if r := judge(c.fault, c.before, c.now); r.Seen != c.seen || !strings.Contains(r.Message, c.says) || r.Message == "" {
				t.Errorf("seen %v: %s; want %v with %q", r.Seen, r.Message, c.seen, c.says)
			}
		})
	}
}

func TestJudgeLinks(t *testing.T) {
	network := func(typ api.DrillFaultType, n *api.NetworkFault) *inject.Fault {
		return toPeers(hitting(api.DrillFault{Type: typ, Network: n}, "g-s0-0"), "g-s0-1")
	}
	cut := network(api.FaultNetworkPartition, nil)
	latency := lasts(20 * time.Millisecond)
	delay := network(api.FaultNetworkDelay, &api.NetworkFault{Latency: &latency})
	loss, double := network(api.FaultNetworkLoss, nil), network(api.FaultNetworkDuplicate, nil)
	narrow := network(api.FaultNetworkBandwidth, nil)
	rtt := func(d time.Duration) func(*linkSight) { return func(l *linkSight) { l.RTT = int64(d) } }
	slowed := func(d time.Duration) *sight { // at both ends
		s := both(rtt(d))
		s.Links[1].RTT = int64(d)
		return s
	}
	resent := func(n uint64) func(*linkSight) { return func(l *linkSight) { l.Resent = n } }
	ended := func(boots map[string]string, silent map[string]string) *sight {
		return &sight{Boots: boots, Silent: silent}
	}
	here := map[string]string{"g-s0-0": "b-g-s0-0", "g-s0-1": "b-g-s0-1"}

	judgeAll(t, judgeLinks, map[string]verdictOf{
		"cut, nothing comes":       {cut, both(nil), both(func(l *linkSight) { l.Quiet = int64(300 * time.Millisecond) }), true, "(net1) nothing came for 300ms"},
		"not cut":                  {cut, both(nil), both(nil), false, "longest silence is 5ms"},
		"cut, a little quiet":      {cut, both(nil), both(func(l *linkSight) { l.Quiet = int64(150 * time.Millisecond) }), false, "seen from 200ms"},
		"cut, connections ended":   {cut, both(nil), ended(here, nil), true, "2 earlier connections"},
		"cut, one end unreachable": {cut, both(nil), ended(map[string]string{"g-s0-1": "b-g-s0-1"}, map[string]string{"g-s0-0": "no answer"}), true, "g-s0-0 does not answer"},
		"neither end answers":      {cut, both(nil), ended(nil, map[string]string{"g-s0-0": "no answer", "g-s0-1": "no answer"}), false, "are unknown"},
		"the process was replaced": {cut, both(nil), ended(map[string]string{"g-s0-0": "b-new", "g-s0-1": "b-g-s0-1"}, nil), false, "was replaced"},
		"a second connection lives": {cut, both(nil), &sight{Boots: here, Links: []linkSight{link("g-s0-0", "g-s0-1", func(l *linkSight) { l.Quiet = int64(time.Second) }), link("g-s0-0", "g-s0-1", func(l *linkSight) { l.Kind = "liveness" })}},
			false, "longest silence"},

		"delayed":               {delay, both(nil), slowed(15 * time.Millisecond), true, "15ms, before 200"},
		"delayed by too little": {delay, both(nil), slowed(9 * time.Millisecond), false, "seen when 10ms longer"},
		"an answer held back":   {delay, both(nil), both(rtt(40 * time.Millisecond)), false, "200"},
		"slow before":           {delay, slowed(15 * time.Millisecond), slowed(16 * time.Millisecond), false, "16ms"},
		"no latency asked for":  {network(api.FaultNetworkDelay, nil), both(nil), slowed(time.Second), false, "0s"},

		"lost":                     {loss, both(resent(40)), both(resent(43)), true, "3 segments"},
		"none lost":                {loss, both(resent(40)), both(resent(42)), false, "2 segments"},
		"on a new connection":      {loss, both(resent(40)), both(func(l *linkSight) { l.Ends, l.Resent = "new", 3 }), true, "3 segments"},
		"a counter that restarted": {loss, both(resent(40)), both(func(l *linkSight) { l.Boot, l.Resent = "b-new", 2 }), false, "2 segments"},
		"doubled":                  {double, both(nil), both(func(l *linkSight) { l.Doubled = 9 }), true, "9 segments came twice"},
		"lost is not doubled":      {double, both(nil), both(resent(99)), false, "0 segments came twice"},

		"narrow: it queues": {narrow, both(nil), slowed(8 * time.Millisecond), true, "8ms"},
		"narrow: it drops":  {narrow, both(nil), both(resent(5)), true, "5 segments"},
		"wide enough":       {narrow, both(nil), slowed(2 * time.Millisecond), false, "5ms longer"},

		"a client at the other end": {toPeers(hitting(api.DrillFault{Type: api.FaultNetworkLoss}, "g-s0-0"), "recorder"), both(nil), both(resent(99)), false, "not a grid node"},
		"another shard":             {toPeers(hitting(api.DrillFault{Type: api.FaultNetworkLoss}, "g-s0-0"), "g-s1-0"), both(nil), both(resent(99)), false, "not a grid node"},
		"everything":                {hitting(api.DrillFault{Type: api.FaultNetworkLoss}, "g-s0-0"), both(nil), both(resent(3)), true, "g-s0-0 and g-s0-1"},
	})
}

func TestJudgePods(t *testing.T) {
	was := podSight{Name: "g-s0-0", UID: "u1", Container: "containerd://aaaaaaaaaaaaaaaaaaaa", Restarts: 1, Image: "grid-node:1", Ready: "True"}
	pods := func(change func(*podSight)) *sight {
		p := was
		if change != nil {
			change(&p)
		}
		return &sight{Pods: []podSight{p}}
	}
	f := hitting(api.DrillFault{}, "g-s0-0")
	judgeAll(t, judgeGone, map[string]verdictOf{
		"there":         {f, pods(nil), pods(nil), false, "still there"},
		"gone":          {f, pods(nil), pods(func(p *podSight) { p.UID = "" }), true, "no other"},
		"replaced":      {f, pods(nil), pods(func(p *podSight) { p.UID = "u2" }), true, "UID u2"},
		"not looked at": {f, pods(nil), &sight{}, false, "not looked at"},
	})
	judgeAll(t, judgeRestarted, map[string]verdictOf{
		"the same":            {f, pods(nil), pods(nil), false, "the earlier one"},
		"restarted":           {f, pods(nil), pods(func(p *podSight) { p.Restarts = 2 }), true, "restarts 2, before 1"},
		"another id":          {f, pods(nil), pods(func(p *podSight) { p.Container = "containerd://bbbbbbbbbbbbbbbbbbbb" }), true, "bbbbbbbbbbbb"},
		"not running yet":     {f, pods(nil), pods(func(p *podSight) { p.Container = "" }), false, "the earlier one"},
		"the pod is replaced": {f, pods(nil), pods(func(p *podSight) { p.UID, p.Restarts = "u2", 2 }), false, "as a whole"},
	})
	judgeAll(t, judgeFailing, map[string]verdictOf{
		"as before":              {f, pods(nil), pods(nil), false, "grid-node:1"},
		"another image, ready":   {f, pods(nil), pods(func(p *podSight) { p.Image = "pause" }), false, "pause"},
		"not ready, but running": {f, pods(nil), pods(func(p *podSight) { p.Image, p.Ready = "pause", "False" }), false, "pause"},
		"ended":                  {f, pods(nil), pods(func(p *podSight) { p.Image, p.Ended = "pause", "terminated (Error, exit code 137)" }), true, "exit code 137"},
		"crashed by itself":      {f, pods(nil), pods(func(p *podSight) { p.Ended = "terminated (Error, exit code 2)" }), false, "exit code 2"},
		"not ready by itself":    {f, pods(nil), pods(func(p *podSight) { p.Ready = "False" }), false, "False"},
		"the pod was replaced":   {f, pods(nil), pods(func(p *podSight) { p.UID, p.Image, p.Ready = "u2", "x", "False" }), false, "x"},
		"the container is gone":  {f, pods(nil), pods(func(p *podSight) { p.Image, p.Container = "pause", "containerd://b" }), true, "pause"},
	})
}

func TestJudgeClocks(t *testing.T) {
	skew := func(offset time.Duration, clocks ...api.DrillClock) *inject.Fault {
		return hitting(api.DrillFault{Type: api.FaultClockSkew, Clock: &api.ClockFault{Offset: lasts(offset), Clocks: clocks}}, "g-s0-0")
	}
	clock := func(shift, monotonic, uncertain time.Duration) *sight {
		return &sight{Clocks: []clockSight{{Pod: "g-s0-0", Shift: int64(shift), Monotonic: int64(monotonic), Error: int64(uncertain)}}}
	}
	judgeAll(t, judgeClocks, map[string]verdictOf{
		"not moved":                {skew(time.Minute), clock(0, 0, 0), clock(time.Microsecond, 0, 0), false, "moved by 1µs"},
		"moved":                    {skew(time.Minute), clock(0, 0, 0), clock(time.Minute, 0, 0), true, "1m0s"},
		"back":                     {skew(-time.Minute), clock(0, 0, 0), clock(-time.Minute, 0, 0), true, "-1m0s"},
		"the other way":            {skew(-time.Minute), clock(0, 0, 0), clock(time.Minute, 0, 0), false, "1m0s"},
		"was off before":           {skew(time.Minute), clock(time.Minute, 0, 0), clock(time.Minute, 0, 0), false, "moved by 0s"},
		"much too far":             {skew(time.Second), clock(0, 0, 0), clock(time.Minute, 0, 0), false, "within 105ms"},
		"not surely known":         {skew(100 * time.Millisecond), clock(0, 0, 40*time.Millisecond), clock(160*time.Millisecond, 0, 40*time.Millisecond), true, "within 95ms"},
		"the wrong clock":          {skew(time.Minute, api.ClockMonotonic), clock(0, 0, 0), clock(time.Minute, 0, 0), false, "Monotonic"},
		"both":                     {skew(time.Minute, api.ClockRealtime, api.ClockMonotonic), clock(0, 0, 0), clock(time.Minute, time.Minute, 0), true, "Monotonic"},
		"one of two":               {skew(time.Minute, api.ClockRealtime, api.ClockMonotonic), clock(0, 0, 0), clock(time.Minute, 0, 0), false, "Monotonic"},
		"does not answer":          {skew(time.Minute), clock(0, 0, 0), &sight{Silent: map[string]string{"g-s0-0": "refused"}}, false, "refused"},
		"nothing before the fault": {skew(time.Minute), &sight{}, clock(time.Minute, 0, 0), false, "no clock"},
	})
}

func TestJudgeLoad(t *testing.T) {
	cpu := hitting(api.DrillFault{Type: api.FaultCPUStress, Stress: &api.StressFault{CPUWorkers: ptr.To[int32](2), CPULoad: "80%"}}, "g-s0-0")
	little := hitting(api.DrillFault{Type: api.FaultCPUStress, Stress: &api.StressFault{CPUWorkers: ptr.To[int32](1), CPULoad: "10%"}}, "g-s0-0")
	memory := hitting(api.DrillFault{Type: api.FaultMemoryStress, Stress: &api.StressFault{Memory: "256Mi"}}, "g-s0-0")
	load := func(others, waiting, mib, killed float64) *sight {
		return &sight{Loads: []loadSight{{"g-s0-0", others, waiting, mib * (1 << 20), killed}}}
	}
	judgeAll(t, judgeCPU, map[string]verdictOf{
		"busy":                       {cpu, load(0.01, 0, 0, 0), load(1.4, 0.3, 0, 0), true, "1.40 cores"},
		"idle":                       {cpu, load(0.01, 0, 0, 0), load(0.02, 0.9, 0, 0), false, "0.25 more"},
		"busy before":                {cpu, load(1.4, 0, 0, 0), load(1.5, 0, 0, 0), false, "before 1.40"},
		"little asked for":           {little, load(0, 0, 0, 0), load(0.08, 0, 0, 0), true, "0.05 more"},
		"an older kernel, waiting":   {cpu, load(-1, 0.01, 0, 0), load(-1, 0.2, 0, 0), true, "20.0%"},
		"an older kernel, as before": {cpu, load(-1, 0.01, 0, 0), load(-1, 0.05, 0, 0), false, "5% more"},
		"does not answer":            {cpu, load(0, 0, 0, 0), &sight{Silent: map[string]string{"g-s0-0": "refused"}}, false, "refused"},
		"nothing before the fault!":  {cpu, &sight{Loads: []loadSight{{Pod: "other"}}}, load(2, 0, 0, 0), false, "other"},
	})
	judgeAll(t, judgeMemory, map[string]verdictOf{
		"taken":     {memory, load(0, 0, 500, 0), load(0, 0, 700, 0), true, "200 MiB more"},
		"not taken": {memory, load(0, 0, 500, 0), load(0, 0, 600, 0), false, "from 128 MiB"},
		"killed":    {memory, load(0, 0, 500, 0), load(0, 0, 400, 1), true, "killed 1"},
	})
}

func TestJudgeSinks(t *testing.T) {
	delay := lasts(100 * time.Millisecond)
	slow := hitting(api.DrillFault{Type: api.FaultIODelay, IO: &api.IOFault{Delay: &delay}}, "g-s0-0")
	half := hitting(api.DrillFault{Type: api.FaultIODelay, IO: &api.IOFault{Delay: &delay, Percent: "50%"}}, "g-s0-0")
	broken := hitting(api.DrillFault{Type: api.FaultIOError, IO: &api.IOFault{Errno: ptr.To[int32](28)}}, "g-s0-0")
	sink := func(errors, seconds, writes, age float64) *sight {
		return &sight{Sinks: []sinkSight{{"g-s0-0", errors, seconds, writes, age}}}
	}
	judgeAll(t, judgeSinks, map[string]verdictOf{
		"slower":             {slow, sink(0, 1, 1000, 0), sink(0, 2, 1010, 0), true, "100.0 ms each"},
		"as fast":            {slow, sink(0, 1, 1000, 0), sink(0, 1.02, 1010, 0), false, "50.0 ms longer"},
		"half of the calls":  {half, sink(0, 1, 1000, 0), sink(0, 1.3, 1010, 0), true, "25.0 ms longer"},
		"one write hangs":    {slow, sink(0, 1, 1000, 0), sink(0, 1, 1000, 0.3), true, "0.3 s old"},
		"nothing is written": {slow, sink(0, 1, 1000, 0), sink(0, 1, 1000, 0), false, "0 writes"},
		"errors":             {broken, sink(2, 1, 1000, 0), sink(3, 1, 1000, 0), true, "1 writes"},
		"errors of before":   {broken, sink(2, 1, 1000, 0), sink(2, 1, 1000, 9), false, "seen from 1"},
		"one of two writes":  {broken, &sight{Sinks: []sinkSight{{Pod: "a"}, {Pod: "b"}}}, &sight{Sinks: []sinkSight{{Pod: "a", Errors: 1}, {Pod: "b"}}}, true, "of b failed"},
		"does not answer":    {broken, sink(0, 0, 0, 0), &sight{Silent: map[string]string{"g-s0-0": "refused"}}, false, "refused"},
	})
}

func TestJudgeMachines(t *testing.T) {
	f := hitting(api.DrillFault{Type: api.FaultNodePowerOff}, "g-s0-0", "g-s1-0")
	node := func(boot, ready string, pods map[string]string) *sight {
		return &sight{Nodes: []nodeSight{{"node-a", boot, ready, pods}}}
	}
	two := map[string]string{"g-s0-0": "b0", "g-s1-0": "b1"}
	judgeAll(t, judgeNodes, map[string]verdictOf{
		"all is as before":      {f, node("m1", "True", two), node("m1", "True", two), false, "before, 0 no longer answer"},
		"both are silent":       {f, node("m1", "True", two), node("m1", "True", nil), true, "before, 2 no longer answer"},
		"one is silent":         {f, node("m1", "True", two), node("m1", "True", map[string]string{"g-s0-0": "b0"}), false, "g-s1-0"},
		"others run there":      {f, node("m1", "True", two), node("m1", "True", map[string]string{"g-s0-0": "b7", "g-s1-0": "b8"}), true, "before, 2 no longer answer or were replaced"},
		"away":                  {f, node("m1", "True", nil), node("m1", "Unknown", nil), true, `"Unknown"`},
		"away before":           {f, node("m1", "Unknown", nil), node("m1", "Unknown", nil), false, `"Unknown"`},
		"started anew":          {f, node("m1", "True", nil), node("m2", "True", nil), true, "m2"},
		"was not looked at":     {f, node("m1", "True", two), &sight{}, false, "not looked at"},
		"empty and undisturbed": {f, node("m1", "True", nil), node("m1", "True", nil), false, "of 0"},
	})
	arbiter := func(reachable string) *sight {
		return &sight{Arbiters: []arbiterSight{{"g-s0-0", "10.1.0.1", reachable, "i/o timeout"}}}
	}
	judgeAll(t, judgeArbiters, map[string]verdictOf{
		"answers":         {f, arbiter(yes), arbiter(yes), false, "answers g-s0-0"},
		"does not":        {f, arbiter(yes), arbiter(no), true, "i/o timeout"},
		"node is silent":  {f, arbiter(yes), &sight{Silent: map[string]string{"g-s0-0": "refused"}}, false, "refused"},
		"one of two does": {f, &sight{Arbiters: []arbiterSight{{Pod: "a"}, {Pod: "b"}}}, &sight{Arbiters: []arbiterSight{{Pod: "a", Reachable: no}, {Pod: "b", Reachable: yes}}}, false, "answers b"},
	})
	primary := func(pod string, epoch int64) *sight {
		return &sight{Partitions: []primarySight{{"g-p0", pod, epoch}}}
	}
	judgeAll(t, judgePrimaries, map[string]verdictOf{
		"moved":      {f, primary("g-s0-0", 4), primary("g-s0-1", 5), true, "g-s0-1 at epoch 5"},
		"not moved":  {f, primary("g-s0-0", 4), primary("g-s0-0", 4), false, "g-s0-0 at epoch 4"},
		"there back": {f, primary("g-s0-0", 4), primary("g-s0-0", 6), false, "epoch 6"},
		"no primary": {f, primary("g-s0-0", 4), primary("", 5), false, "epoch 5"},
		"not known":  {f, primary("g-s0-0", 4), &sight{}, false, "not looked at"},
	})
	judgeAll(t, judgeGrid, map[string]verdictOf{
		"all new":   {f, &sight{UIDs: []string{"a", "b"}}, &sight{UIDs: []string{"c", "d"}}, true, "0 still exist"},
		"one left":  {f, &sight{UIDs: []string{"a", "b"}}, &sight{UIDs: []string{"c", "b"}}, false, "1 still exist"},
		"one short": {f, &sight{UIDs: []string{"a", "b"}}, &sight{UIDs: []string{"c"}}, false, "there are 1"},
	})
}
