package ordergrid

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

func until(seconds float64) *float64 { return &seconds }

func memoryOf(pod string, used int64, fullIn *float64) *nodestatus.Memory {
	return &nodestatus.Memory{Grid: "rtd", Pod: pod, BootID: "b", UsedBytes: used, RefuseBytes: 1000, LimitBytes: 1032, SecondsUntilFull: fullIn, Full: fullIn != nil && *fullIn == 0}
}

// TestRoomOfAGrid: the pod that is full first counts, and the result is coarse, so that status is seldom written.
func TestRoomOfAGrid(t *testing.T) {
	freeing := memoryOf("a", 800, nil)
	freeing.FreeableBytes = 700
	for _, test := range []struct {
		name    string
		answers []*nodestatus.Memory
		want    string
		again   time.Duration
	}{
		{"no answer", nil, "none", roomLate},
		{"idle", []*nodestatus.Memory{memoryOf("a", 123, nil), memoryOf("b", 123, nil)}, "a 10 % <nil> refusing []", roomLate},
		{"a day and more", []*nodestatus.Memory{memoryOf("a", 500, until(90_000))}, "a 50 % <nil> refusing []", roomLate},
		{"fills", []*nodestatus.Memory{memoryOf("a", 500, until(700)), memoryOf("b", 510, until(3000))}, "b 50 % 10m0s refusing []", roomLate},
		{"soon", []*nodestatus.Memory{memoryOf("a", 990, until(17))}, "a 95 % 10s refusing []", roomSoon},
		{"in a while", []*nodestatus.Memory{memoryOf("a", 900, until(130))}, "a 90 % 2m0s refusing []", 30 * time.Second},
		{"full", []*nodestatus.Memory{memoryOf("b", 1000, until(0)), memoryOf("a", 400, until(90))}, "b 100 % 0s refusing [b]", roomSoon},
		{"frees", []*nodestatus.Memory{freeing}, "a 10 % <nil> refusing []", roomLate},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := roomOf(test.answers, len(test.answers))
			got := "none"
			if s := r.status(); s != nil {
				in := "<nil>"
				if s.TimeUntilFull != nil {
					in = s.TimeUntilFull.Duration.String()
				}
				got = fmt.Sprintf("%s %d %% %s refusing %v", s.Pod, s.UsedPercent, in, r.refusing)
			}
			if got != test.want || r.again() != test.again {
				t.Errorf("%s, again in %v; want %s, %v", got, r.again(), test.want, test.again)
			}
		})
	}
}

// TestAcceptingOrders: a full grid is reported, and the remedy is possible for the grid.
func TestAcceptingOrders(t *testing.T) {
	claim := []api.SinkSpec{{Name: "audit", Type: api.SinkFile, File: &api.FileSinkSpec{Volume: api.SinkVolumeClaim}}}
	for _, test := range []struct {
		name   string
		change func(*observation)
		want   string
		text   string
	}{
		{"not asked", func(o *observation) { o.roomAsked = false }, "Unknown/NodesSilent", "have not been queried for their memory yet"},
		{"silent", func(o *observation) { o.room = room{} }, "Unknown/NodesSilent", "port 9400, path /memory"},
		{"room", func(*observation) {}, "True/Accepting", "has memory for more"},
		{"full, in memory only", func(o *observation) { o.room.refusing = []string{"rtd-s0-0"} }, "False/Full", "rtd-s0-0. No acknowledged order is lost. spec.retention.policy KeepAll frees nothing, and FreeDownstream needs a sink that outlives the pods: add one of type Kafka, PostgreSQL, Archive or External to spec.sinks, or raise spec.memory"},
		{"full, with a volume", func(o *observation) {
			o.room.refusing = []string{"rtd-s0-0"}
			o.grid.Spec.Sinks = claim
		}, "False/Full", "KeepAll frees nothing: set FreeDownstream, or raise spec.memory"},
		{"full although it frees", func(o *observation) {
			o.room.refusing = []string{"rtd-s0-0", "rtd-s0-1"}
			o.grid.Spec.Sinks = claim
			o.grid.Spec.Retention.Policy = api.RetentionFreeDownstream
		}, "False/Full", "Only what every sink holds is freed: check which one lags"},
		{"no primary", func(o *observation) {
			o.room.refusing = []string{"rtd-s0-0"}
			o.partitions[1].Status = api.GridPartitionStatus{}
		}, "False/NotClaimed", "see condition Available"},
		{"this operator has just started", func(o *observation) {
			o.roomAsked = false
			meta.SetStatusCondition(&o.grid.Status.Conditions, metav1.Condition{Type: api.ConditionAcceptingOrders, Status: metav1.ConditionFalse, Reason: reasonFull, Message: "as it was"})
		}, "False/Full", "as it was"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := healthy()
			o.room, o.roomAsked = roomOf([]*nodestatus.Memory{memoryOf("rtd-s0-0", 100, nil)}, 1), true
			test.change(o)
			j := judgeAccepting(o)
			if got := string(j.status) + "/" + j.reason; got != test.want || !strings.Contains(j.message, test.text) {
				t.Errorf("%s: %s\nwant %s: … %s", got, j.message, test.want, test.text)
			}
			if a := judgeAvailable(o); a.status == metav1.ConditionTrue && strings.Contains(a.message, "accepts orders") {
				t.Errorf("Available of a grid that may be full: %s", a.message)
			}
		})
	}
}

// TestFullGrid: the memory reported by a node reaches conditions, status and events, and unchanged reports are not
// written.
func TestFullGrid(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{})
	b.run(grid)
	b.play(grid)
	b.run(grid)
	say := func(used int64, fullIn *float64) {
		for ordinal := range grid.Spec.Replicas {
			m := memoryOf(api.PodName(grid.Name, 0, ordinal), used, fullIn)
			m.Grid = grid.Name
			b.nodes.remembers(podIP(0, ordinal)+":9400", m)
		}
		b.clock.SetTime(b.clock.Now().Add(roomLate))
		b.reconcile.askRooms(t.Context())
	}
	check := func(want, memory string) {
		t.Helper()
		c := meta.FindStatusCondition(grid.Status.Conditions, api.ConditionAcceptingOrders)
		if got := string(c.Status) + "/" + c.Reason; got != want {
			t.Errorf("%s: %s, want %s", got, c.Message, want)
		}
		if m := grid.Status.Memory; m == nil {
			t.Error("status.memory is absent")
		} else {
			got := fmt.Sprint(m.UsedPercent)
			if m.TimeUntilFull != nil {
				got += " " + m.TimeUntilFull.Duration.String()
			}
			if got != memory {
				t.Errorf("memory %s, want %s", got, memory)
			}
		}
	}
	b.eventsSince()
	say(300, nil)
	b.run(grid)
	check("True/Accepting", "30")
	say(310, nil)
	if writes := b.run(grid); len(writes) != 0 {
		t.Errorf("the same as before made writes: %v", writes)
	}
	if asked := b.memoryAsked(); asked != 4 {
		t.Errorf("%d queries in two rounds to two pods", asked)
	}
	say(900, until(1300))
	b.run(grid)
	check("True/Accepting", "90 20m0s")
	if got := b.eventsSince(); strings.Contains(got, "Full") || strings.Contains(got, "Accepting") {
		t.Errorf("events of a grid that is not full: %s", got)
	}
	say(1000, until(0))
	b.run(grid)
	check("False/Full", "100 0s")
	if got := b.eventsSince(); !strings.Contains(got, "Warning Full orders are refused for lack of memory: rtd-s0-0, rtd-s0-1") {
		t.Errorf("events when it begins: %s", got)
	}
	say(500, nil)
	b.run(grid)
	check("True/Accepting", "50")
	if got := b.eventsSince(); !strings.Contains(got, "Normal Accepting") {
		t.Errorf("events when it ends: %s", got)
	}
	if !meta.IsStatusConditionTrue(grid.Status.Conditions, api.ConditionAvailable) {
		t.Error("a grid that answers reads is not Available")
	}
	b.reconcile.rooms.forget(types.NamespacedName{Namespace: grid.Namespace, Name: grid.Name})
	if writes := b.run(grid); len(writes) != 0 {
		t.Errorf("an operator that has just started wrote %v", writes)
	}
}

// eventsSince returns the events since the last call.
func (b *bench) eventsSince() string {
	var lines []string
	for {
		select {
		case e := <-b.events:
			lines = append(lines, e)
		default:
			return strings.Join(lines, "\n")
		}
	}
}

func (b *bench) memoryAsked() int {
	b.nodes.mu.Lock()
	defer b.nodes.mu.Unlock()
	return b.nodes.memoryAsked
}
