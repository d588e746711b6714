package scale

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ordergrid/ordergrid/e2e/kube"
)

// Result of one run. Times are in seconds unless the name says otherwise.
type Result struct {
	Grids int `json:"grids"`
	Pods  int `json:"pods"`

	Created float64 `json:"created"` // from the first grid sent to the API server to the last
	Steady  float64 `json:"steady"`  // from the first grid sent to the last one that is Available, Redundant and not Progressing
	Create  Phase   `json:"create"`  // until the operator had nothing to do

	Rest      Phase            `json:"rest"`
	Heap      int64            `json:"heap"`      // of the operator at rest, bytes in use
	Processes map[string]usage `json:"processes"` // at rest

	Reactions []float64 `json:"reactionsMs"` // from the deletion of a Service to its being back, milliseconds

	Restarted   float64 `json:"restarted"` // from the start of the process until it had looked at every grid and had nothing to do
	Restart     Phase   `json:"restart"`
	RestartHeap int64   `json:"restartHeap"`
	RestartRSS  int64   `json:"restartRSS"`

	Objects map[string]int `json:"objects"` // by kind
}

// Phase is what happened in a stretch of time.
type Phase struct {
	Seconds    float64            `json:"seconds"`
	Reconciles float64            `json:"reconciles"`
	Errors     float64            `json:"errors"`
	Questions  float64            `json:"questions"` // asked of grid nodes
	P50        float64            `json:"p50Ms"`     // of a reconcile
	P99        float64            `json:"p99Ms"`
	QueueP50   float64            `json:"queueP50Ms"` // of a grid's wait in the queue
	QueueP99   float64            `json:"queueP99Ms"`
	Requests   map[string]int     `json:"requests"` // of the operator, by verb and resource, from the API server's audit log; without watches
	Watches    int                `json:"watches"`  // opened
	Sent       float64            `json:"sent"`     // requests by the operator's own count, watches included
	CPU        map[string]float64 `json:"cpu"`      // by process
}

// phase is what happened between two readings; before is nil for a process that has started in between.
func (m *measurement) phase(before, after *reading, begin, end time.Time) (p Phase, err error) {
	if before == nil {
		before = &reading{processes: map[string]usage{}}
	}
	p = Phase{
		Seconds: end.Sub(begin).Seconds(), Reconciles: after.reconciles - before.reconciles, Errors: after.errors - before.errors,
		Questions: after.questions - before.questions, Sent: after.requests - before.requests, CPU: map[string]float64{}, Requests: map[string]int{},
	}
	p.P50, p.P99 = quantiles(before.took, after.took)
	p.QueueP50, p.QueueP99 = quantiles(before.queued, after.queued)
	for name, u := range after.processes {
		p.CPU[name] = (u.CPU - before.processes[name].CPU).Seconds()
	}
	list, err := kube.RequestsBetween(m.file("audit.log"), "system:serviceaccount:"+operatorNamespace, begin, end)
	for _, q := range list {
		if q.Verb == "watch" {
			p.Watches++ // one that has ended
			continue
		}
		p.Requests[q.Verb+" "+resourceOf(q.RequestURI)]++
	}
	return p, err
}

// Total of the requests whose key begins with prefix.
func (p *Phase) Total(prefix string) (n int) {
	for key, count := range p.Requests {
		if strings.HasPrefix(key, prefix) {
			n += count
		}
	}
	return n
}

// Verbs that were used.
func (p *Phase) Verbs() []string {
	verbs := map[string]bool{}
	for key := range p.Requests {
		verb, _, _ := strings.Cut(key, " ")
		verbs[verb] = true
	}
	return slices.Sorted(maps.Keys(verbs))
}

// resourceOf a request: "pods", "ordergrids/status".
func resourceOf(uri string) string {
	path, _, _ := strings.Cut(uri, "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) > 0 && parts[0] == "apis" {
		parts = parts[min(3, len(parts)):] // apis, group, version
	} else {
		parts = parts[min(2, len(parts)):] // api, version
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	switch len(parts) {
	case 0:
		return "discovery"
	case 3:
		return parts[0] + "/" + parts[2]
	}
	return parts[0]
}

func listLength(list runtime.Object) int { return meta.LenList(list) }
