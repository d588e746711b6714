package inject

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
)

// service is an executor with configured answers that records its requests.
type service struct {
	mu     sync.Mutex
	asked  []string
	faults map[string]executor.Fault
	answer func(w http.ResponseWriter, r *http.Request) bool // true: it has answered
}

func newExecutor(t *testing.T) (*service, *Executor) {
	t.Helper()
	s := &service{faults: map[string]executor.Fault{}}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	c, err := executor.NewClient(srv.URL, "secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, &Executor{Name: "rack", Service: c}
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	if s.answer != nil && s.answer(w, r) {
		return
	}
	id := strings.TrimPrefix(r.URL.Path, executor.PathFault)
	switch {
	case r.URL.Path == executor.PathCapabilities:
		_, _ = w.Write([]byte(`{"name":"rack 7","types":[{"type":"NodePowerOff","nodes":["node-a"],"maxDeadlineSeconds":120},{"type":"APIServerOutage"},{"type":"NetworkDelay"}]}`))
	case r.URL.Path == executor.PathFaults:
		list := executor.FaultList{}
		for id := range s.faults {
			list.Faults = append(list.Faults, executor.Status{ID: id, State: executor.Injected})
		}
		_ = json.NewEncoder(w).Encode(list)
	case r.Method == http.MethodPut:
		var f executor.Fault
		if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.faults[id] = f
		_ = json.NewEncoder(w).Encode(executor.Status{ID: id, State: executor.Injected, Witness: executor.Witness{Seen: true, Message: "the lamp is out"}})
	case r.Method == http.MethodDelete:
		delete(s.faults, id)
		_ = json.NewEncoder(w).Encode(executor.Status{ID: id, State: executor.Recovered})
	case s.faults[id].Type == "":
		w.WriteHeader(http.StatusNotFound)
	default:
		_ = json.NewEncoder(w).Encode(executor.Status{ID: id, State: executor.Injected, Witness: executor.Witness{Seen: true, Message: "the lamp is out"}})
	}
}

const nightFault = "trading-night-7-5a1e0c3d"

func TestLifeOfAnExecutorsFault(t *testing.T) {
	s, e := newExecutor(t)
	b := &bench{t: t}
	f := fault(api.DrillFault{Type: api.FaultNodePowerOff})
	f.Nodes = []string{"node-a"}
	b.mustState(e, f, Gone)
	for range 2 {
		if err := e.Inject(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.faults[nightFault]; got.Type != "NodePowerOff" || len(got.Nodes) != 1 || got.DeadlineSeconds != 70 {
		t.Errorf("%+v", s.faults)
	}
	if st := b.mustState(e, f, Injected); !strings.Contains(st.Seen, "the lamp is out") {
		t.Errorf("%+v", st)
	}
	if left, err := e.Leftovers(t.Context(), f.Drill); err != nil || len(left) != 1 || !strings.Contains(left[0], nightFault) {
		t.Errorf("%q, %v", left, err)
	}
	// A drill of another name with the same prefix, and an earlier one of the same name, have nothing here.
	for _, d := range []Drill{{"trading", "night-7", f.Drill.UID}, {"trading", "night", "77777777-1"}} {
		if left, err := e.Leftovers(t.Context(), d); err != nil || len(left) != 0 {
			t.Errorf("%v: %q, %v", d, left, err)
		}
	}
	if err := e.RecoverAll(t.Context(), f.Drill); err != nil {
		t.Fatal(err)
	}
	b.mustState(e, f, Gone)
	if err := e.Recover(t.Context(), f); err != nil {
		t.Errorf("recovered twice: %v", err)
	}
}

// The operator cannot end an outage of the API server: it has no API server. The executor ends it at the deadline.
func TestAnOutageEndsByItself(t *testing.T) {
	s, e := newExecutor(t)
	f := fault(api.DrillFault{Type: api.FaultAPIServerOutage})
	f.Nodes = []string{"node-a"}
	if err := e.Inject(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if got := s.faults[nightFault]; got.DeadlineSeconds != 10 || len(got.Nodes) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestExecutorsNetworkFault(t *testing.T) {
	b := newBench(t)
	s, e := newExecutor(t)
	e.Reader = b.client
	f := b.fault(slow, b.pod("g-s0-0", "10.1.0.1"))
	f.Peers = []corev1.Pod{b.pod("g-s0-1", "10.1.0.2")}
	if err := e.Inject(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	got := s.faults[f.id()]
	if got.Namespace != b.namespace || len(got.Pods) != 1 || got.Pods[0].IP != "10.1.0.1" || got.Pods[0].Node != "node-a" || got.Pods[0].UID != string(f.Pods[0].UID) ||
		len(got.Peers) != 1 || got.Peers[0].IP != "10.1.0.2" || got.Parameters.Latency.Duration != 5*time.Millisecond || got.Parameters.Direction != "Both" || len(got.Nodes) != 1 {
		t.Errorf("%+v", got)
	}
	f.Spec.Network = &api.NetworkFault{Latency: lasts(5e6), Correlation: "25%"}
	f.Step++
	if err := e.Inject(t.Context(), f); !IsPermanent(err) || !strings.Contains(err.Error(), "correlation") {
		t.Errorf("%v", err)
	}
}

func TestExecutorSupports(t *testing.T) {
	s, e := newExecutor(t)
	long := api.DrillFault{Name: "long", Type: api.FaultNodePowerOff, Duration: lasts(90 * time.Second)}
	scope := &Scope{Faults: []api.DrillFault{{Type: api.FaultNodePowerOff, Duration: lasts(time.Minute)}, {Type: api.FaultAPIServerOutage}, {Type: api.FaultPodKill}}, Nodes: []string{"node-a"}}
	got := mustSupport(t, e, scope)
	if !got[api.FaultNodePowerOff].is(Yes, "") || !got[api.FaultAPIServerOutage].is(Yes, "") || !got[api.FaultPodKill].is(No, "does not offer") {
		t.Errorf("%+v", got)
	}
	scope.Nodes = append(scope.Nodes, "node-b")
	got = mustSupport(t, e, scope)
	if !got[api.FaultNodePowerOff].is(No, "node-b") || !got[api.FaultAPIServerOutage].is(Yes, "") {
		t.Errorf("%+v", got)
	}
	if n := len(s.asked); n != 1 {
		t.Errorf("asked %d times within a moment", n)
	}
	if got := mustSupport(t, e, &Scope{Faults: []api.DrillFault{long}, Nodes: []string{"node-a"}}); !got[api.FaultNodePowerOff].is(No, "120s at most") {
		t.Errorf("%+v", got)
	}
	away, err := executor.NewClient("http://127.0.0.1:1", "secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := mustSupport(t, &Executor{Name: "away", Service: away}, scope); !got[api.FaultNodePowerOff].is(No, "does not answer") {
		t.Errorf("%+v", got)
	}
}

// The service at an executor's address may return anything.
func TestHostileExecutor(t *testing.T) {
	for name, c := range map[string]struct {
		code      int
		body      string
		permanent bool // for Inject
		says      string
	}{
		"refuses":               {400, `{"error":{"field":"nodes[0]","message":"no such node"}}`, true, "no such node"},
		"wants another token":   {401, ``, true, "401"},
		"too busy":              {429, ``, false, "429"},
		"out of order":          {503, `<html>`, false, "503"},
		"no JSON":               {200, `<html>`, false, "is this an executor"},
		"another fault":         {200, `{"id":"other","state":"Injected"}`, false, "asked for was"},
		"a state of its own":    {200, `{"id":"` + nightFault + `","state":"Burning"}`, false, "Burning"},
		"could not be injected": {200, `{"id":"` + nightFault + `","state":"Failed","message":"the plug is stuck"}`, true, "the plug is stuck"},
		"endless":               {200, strings.Repeat(" ", executor.MaxBody+10), false, "longer than"},
	} {
		t.Run(name, func(t *testing.T) {
			s, e := newExecutor(t)
			s.answer = func(w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(c.code)
				_, _ = w.Write([]byte(c.body))
				return true
			}
			f := fault(api.DrillFault{Type: api.FaultNodePowerOff})
			f.Nodes = []string{"node-a"}
			if err := e.Inject(t.Context(), f); err == nil || IsPermanent(err) != c.permanent || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "executor rack") {
				t.Errorf("permanent %v: %v", IsPermanent(err), err)
			}
			st, err := e.State(t.Context(), f)
			if failed := name == "could not be injected"; failed && (err != nil || st.Phase != Gone || !st.Ended) || !failed && err == nil {
				t.Errorf("state %+v, %v", st, err)
			}
			if _, err := e.Leftovers(t.Context(), f.Drill); err == nil && !strings.Contains(c.body, "state") {
				t.Error("no faults are known, and that counts as none being there")
			}
		})
	}
}

// An executor has ended a fault by itself at its deadline.
func TestEnded(t *testing.T) {
	at := time.Now()
	before := at.Add(-time.Second)
	e := &Executor{Name: "rack"}
	for _, c := range []struct {
		s    executor.Status
		want string
	}{
		{executor.Status{State: executor.Recovered, Deadline: &at, Recovered: &at}, "Gone true"},
		{executor.Status{State: executor.Recovered, Deadline: &at, Recovered: &before}, "Gone false"},
		{executor.Status{State: executor.Recovered}, "Gone false"},
		{executor.Status{State: executor.Injecting}, "Pending false"},
		{executor.Status{State: executor.Recovering}, "Recovering false"},
	} {
		if got := e.read(&c.s); fmt.Sprint(got.Phase, " ", got.Ended) != c.want {
			t.Errorf("%+v: %+v", c.s, got)
		}
	}
}
