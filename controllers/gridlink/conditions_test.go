package gridlink

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// page is /status of grid-link for a link from trades to trades.
func page(partitions string) string {
	return `{"source":"trades","target":"trades","reader":"link","ready":true,"partitions":[` + partitions + `]}`
}

func answered(t *testing.T, partitions string) *observation {
	t.Helper()
	a := &answer{}
	if err := json.Unmarshal([]byte(page(partitions)), a); err != nil {
		t.Fatal(err)
	}
	return &observation{link: aLink(), answer: a}
}

// TestConditions: what is not known is not called good, and what needs an administrator comes before what is tried again.
func TestConditions(t *testing.T) {
	const (
		good    = `{"partition":"p0","open":true,"lagEntries":3,"lagBytes":900,"lagSeconds":0.02}`
		slow    = `{"partition":"p1","open":true,"lagEntries":70000,"lagBytes":21000000,"lagSeconds":75.4}`
		closed  = `{"partition":"p2","open":false}`
		failing = `{"partition":"p3","open":false,"lagSeconds":12,"error":{"permanent":false,"text":"dial 192.0.2.7:7400: connection refused","since":"2026-01-02T03:04:05Z"}}`
		parted  = `{"partition":"p4","open":false,"error":{"permanent":true,"text":"the histories have parted at entry 9","since":"2026-01-02T03:04:05Z"}}`
	)
	for name, c := range map[string]struct {
		o                  *observation
		connected, lagging string
		connectedText      string
		laggingText        string
	}{
		"all flow":     {answered(t, good), "True/Connected", "False/WithinLimit", "the log of 1 partitions of trades flows to trades", "by more than 1m0s"},
		"one is slow":  {answered(t, good+","+slow), "True/Connected", "True/Behind", "", "1 of 2 partitions are behind by more than 1m0s: p1 by 1m15s. A forced promotion would lose that"},
		"one is shut":  {answered(t, good+","+closed), "False/Connecting", "Unknown/NotMeasured", "1 of 2 partitions are not open yet: p2", "the lag of 1 of 2 partitions is not known, which are not connected: p2"},
		"one fails":    {answered(t, good+","+failing), "False/Failing", "Unknown/NotMeasured", "p3: dial 192.0.2.7:7400: connection refused", "p3"},
		"parted":       {answered(t, failing+","+parted), "False/NeedsAdministrator", "Unknown/NotMeasured", "1 of 2 partitions are not carried, and no retry helps: p4: the histories have parted at entry 9", ""},
		"parted, slow": {answered(t, parted+","+failing+","+slow), "False/NeedsAdministrator", "True/Behind", "1 of 3", "p1"},
		"no partition": {answered(t, ""), "False/Connecting", "Unknown/NotMeasured", "", ""},
		"no pod":       {&observation{link: aLink()}, "Unknown/NoAnswer", "Unknown/NotMeasured", "no pod of Deployment to-b-link reports; see `kubectl describe pod -n trading -l ordergrid.dev/link=to-b`", "see condition Connected"},
		"no answer":    {&observation{link: aLink(), silent: errors.New("connection refused")}, "Unknown/NoAnswer", "Unknown/NotMeasured", "connection refused", ""},
		"no grid": {&observation{link: aLink(), problem: problem{reasonGridNotFound, "spec.from.gridRef: there is no OrderGrid"}}, "False/GridNotFound", "Unknown/NotMeasured",
			"there is no OrderGrid", ""},
	} {
		t.Run(name, func(t *testing.T) {
			setStatus(c.o, metav1.NewTime(time.Unix(1e9, 0)))
			for kind, want := range map[string][2]string{api.ConditionConnected: {c.connected, c.connectedText}, api.ConditionLagging: {c.lagging, c.laggingText}} {
				got := meta.FindStatusCondition(c.o.link.Status.Conditions, kind)
				if got == nil || string(got.Status)+"/"+got.Reason != want[0] || !strings.Contains(got.Message, want[1]) {
					t.Errorf("%s is %+v\nwant %s: … %s", kind, got, want[0], want[1])
				}
			}
			if l := c.o.link.Status.Lag; (l == nil) != (c.o.answer == nil) {
				t.Errorf("status.lag is %+v with answer %+v", l, c.o.answer)
			}
		})
	}
	o := answered(t, good+","+slow)
	setStatus(o, metav1.Now())
	if l := o.link.Status.Lag; *l != (api.LinkLag{Entries: 50_000, Bytes: 20_000_000, Seconds: 50, Partition: "p1"}) || o.link.Status.Open != 2 || o.link.Status.Partitions != 2 {
		t.Errorf("status.lag is %+v of %+v", l, o.link.Status)
	}
}

// TestAsk: an answer that is too long, of another program or of another link is refused.
func TestAsk(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		body string
		want string
	}{
		"this link":       {200, page(`{"partition":"p0","open":true}`), ""},
		"another link":    {200, strings.Replace(page(""), `"source":"trades"`, `"source":"orders"`, 1), "given to another pod"},
		"another program": {200, "hello", "the answer is not that page of grid-link"},
		"not found":       {404, page(""), "404 Not Found"},
		"too long":        {200, page("") + strings.Repeat(" ", 4<<20), "longer than 4194304 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if q.URL.Path != "/status" || q.Host != "192.0.2.1:9403" {
					t.Errorf("GET http://%s%s", q.Host, q.URL.Path)
				}
				w.WriteHeader(c.code)
				_, _ = w.Write([]byte(c.body))
			}))
			defer s.Close()
			to := &http.Client{Transport: &http.Transport{Dial: func(string, string) (net.Conn, error) { return net.Dial("tcp", s.Listener.Addr().String()) }}}
			a, err := ask(t.Context(), to, &corev1.Pod{Status: corev1.PodStatus{PodIP: "192.0.2.1"}}, aLink())
			if c.want == "" && (err != nil || len(a.Partitions) != 1) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%+v, %v; want %q", a, err, c.want)
			}
		})
	}
}
