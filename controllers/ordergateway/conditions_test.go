package ordergateway

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// page is /status of order-gateway with fields of FIX.
func page(fields string) string {
	return `{"grid":"trades","listeners":{"FIX":{"configured":20,"sessions":12,"maxSessions":500,` + fields + `"refused":[],"unreachable":[]}}}`
}

// refusedPage is one with refused logons.
func refusedPage(refused string) string {
	return strings.Replace(page(""), `"refused":[]`, `"refused":[`+refused+`]`, 1)
}

// serving is a gateway whose Deployment has as many pods ready as answer.
func serving(t *testing.T, pages ...string) *observation {
	t.Helper()
	o := &observation{gateway: aGateway(), deployment: &appsv1.Deployment{}}
	o.gateway.Spec.Replicas = ptr.To(int32(len(pages)))
	for i, p := range pages {
		a := &answer{}
		if err := json.Unmarshal([]byte(p), a); err != nil {
			t.Fatal(err)
		}
		o.said = append(o.said, said{pod: "street-" + string(rune('a'+i)), answer: a})
	}
	n := int32(len(pages))
	o.deployment.Status = appsv1.DeploymentStatus{Replicas: n, ReadyReplicas: n, UpdatedReplicas: n}
	return o
}

func (o *observation) with(change func(*observation)) *observation { change(o); return o }

// TestConditions: what is not known is not called good, and what is refused is told whatever else is well.
func TestConditions(t *testing.T) {
	const (
		wrong    = `{"reason":"Credentials","count":7,"session":"FIX.4.4:BANK->GRID","text":"session FIX.4.4:BANK->GRID: tags 553 and 554 are not those","last":"2026-01-02T03:04:05Z"}`
		stranger = `{"reason":"UnknownSession","count":900,"text":"tags 49 and 56 are \"X\" and \"GRID\"","last":"2026-01-02T03:09:05Z"}`
		novel    = `{"reason":"Moon","count":1,"text":"it is full","last":"2026-01-02T03:04:05Z"}`
	)
	lost := strings.Replace(page(""), `"unreachable":[]`, `"unreachable":["p0: since 2026-01-02T03:04:05Z: dial 10.0.0.7:7400: connection refused"]`, 1)
	for name, c := range map[string]struct {
		o    *observation
		want [4]string // Ready, GridReachable, SessionsLoaded, SessionsRefused
		text [4]string
	}{
		"all is well": {serving(t, page(""), page("")), [4]string{"True/Serving", "True/Reachable", "True/Loaded", "False/NoneRefused"},
			[4]string{"2 of 2 pods serve", "2 pods reach all partitions of OrderGrid trades", "20 FIX sessions are served", "no logon was refused"}},
		"wrong passwords": {serving(t, page(""), refusedPage(stranger+","+wrong)), [4]string{"True/Serving", "True/Reachable", "True/Loaded", "True/CredentialsWrong"},
			[4]string{"", "", "", "500 or more logons were refused within the last five minutes, of session FIX.4.4:BANK->GRID: session FIX.4.4:BANK->GRID: tags 553 and 554 are not those; compare the password"}},
		"strangers":                   {serving(t, refusedPage(stranger)), [4]string{"True/Serving", "True/Reachable", "True/Loaded", "True/SessionUnknown"}, [4]string{"", "", "", "add the session to the file"}},
		"a reason of a later version": {serving(t, refusedPage(novel)), [4]string{"True/Serving", "True/Reachable", "True/Loaded", "True/LogonsRefused"}, [4]string{"", "", "", "see /status of the pods"}},
		"one does not report": {serving(t, page(""), page("")).with(func(o *observation) { o.said[1].answer, o.said[1].silent = nil, errors.New("connection refused") }),
			[4]string{"True/Serving", "True/Reachable", "True/Loaded", "Unknown/NotAllAnswer"}, [4]string{"", "1 pods reach", "", "1 of 2 pods do not report"}},
		"the grid is away": {serving(t, lost).with(func(o *observation) { o.deployment.Status.ReadyReplicas = 0 }),
			[4]string{"False/PartitionsUnreachable", "False/PartitionsUnreachable", "True/Loaded", "False/NoneRefused"}, [4]string{"p0: since", "pod street-a does not reach 1 partitions of OrderGrid trades", "", ""}},
		"a wrong file": {serving(t, page(`"fileError":"sessions.json: sessions[3]: version is FIX.9",`)), [4]string{"True/Serving", "True/Reachable", "False/FileInvalid", "False/NoneRefused"},
			[4]string{"", "", "version is FIX.9; the sessions read before are served", ""}},
		"full":       {serving(t, strings.Replace(page(""), `"sessions":12`, `"sessions":500`, 1)), [4]string{"False/SessionsFull", "True/Reachable", "True/Loaded", "False/NoneRefused"}, [4]string{"every pod has spec.maxSessions, 500, sessions", "", "", ""}},
		"update":     {serving(t, page("")).with(func(o *observation) { o.deployment.Status.UpdatedReplicas = 0 }), [4]string{"True/Updating", "True/Reachable", "True/Loaded", "False/NoneRefused"}, [4]string{"0 of 1 are of the present template", "", "", ""}},
		"half":       {serving(t, page(""), page("")).with(func(o *observation) { o.deployment.Status.ReadyReplicas = 1 }), [4]string{"False/PodsNotReady", "True/Reachable", "True/Loaded", "False/NoneRefused"}, [4]string{"1 of 2 pods serve; see `kubectl describe pod -n trading -l ordergrid.dev/gateway=street`", "", "", ""}},
		"old status": {serving(t, page("")).with(func(o *observation) { o.deployment.Generation = 2 }), [4]string{"False/PodsNotReady", "True/Reachable", "True/Loaded", "False/NoneRefused"}, [4]string{}},
		"nothing":    {serving(t).with(func(o *observation) { o.gateway.Spec.Replicas = ptr.To[int32](0) }), [4]string{"False/ScaledToZero", "Unknown/NoAnswer", "Unknown/NoAnswer", "Unknown/NoAnswer"}, [4]string{"set it to 1 or more", "no pod of Deployment street-gateway reports", "", ""}},
		"no pod":     {serving(t).with(func(o *observation) { o.gateway.Spec.Replicas = nil; o.deployment = nil }), [4]string{"False/PodsNotReady", "Unknown/NoAnswer", "Unknown/NoAnswer", "Unknown/NoAnswer"}, [4]string{"0 of 1 pods serve", "", "", ""}},
		"no grid":    {serving(t).with(func(o *observation) { o.problem = problem{reasonGridNotFound, "there is no OrderGrid"} }), [4]string{"False/GridNotFound", "False/GridNotFound", "Unknown/NoAnswer", "Unknown/NoAnswer"}, [4]string{"there is no OrderGrid", "", "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			setStatus(c.o, metav1.NewTime(time.Unix(1e9, 0)))
			for i, of := range conditions[:len(c.want)] {
				got := meta.FindStatusCondition(c.o.gateway.Status.Conditions, of.kind)
				if got == nil || string(got.Status)+"/"+got.Reason != c.want[i] || !strings.Contains(got.Message, c.text[i]) {
					t.Errorf("%s is %+v\nwant %s: … %s", of.kind, got, c.want[i], c.text[i])
				}
			}
		})
	}
	o := serving(t, page(""), page(""))
	setStatus(o, metav1.Now())
	if s := o.gateway.Status; s.Sessions != 20 || s.Configured != 20 || s.ReadyReplicas != 2 || s.Endpoint != "street-gateway.trading.svc:7440" || s.Selector != "app.kubernetes.io/component=gateway,ordergrid.dev/gateway=street" {
		t.Errorf("status is %+v", s)
	}
}

// TestAsk: an answer that is too long, of another program or of another gateway's pod is refused.
func TestAsk(t *testing.T) {
	for name, c := range map[string]struct {
		code int
		body string
		want string
	}{
		"this gateway":    {200, page(""), ""},
		"another grid":    {200, strings.Replace(page(""), "trades", "orders", 1), "given to another pod"},
		"another program": {200, "hello", "the answer is not that page of order-gateway"},
		"not found":       {404, page(""), "404 Not Found"},
		"too long":        {200, page("") + strings.Repeat(" ", 4<<20), "longer than 4194304 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if q.URL.Path != "/status" || q.Host != "192.0.2.1:9404" {
					t.Errorf("GET http://%s%s", q.Host, q.URL.Path)
				}
				w.WriteHeader(c.code)
				_, _ = w.Write([]byte(c.body))
			}))
			defer s.Close()
			to := &http.Client{Transport: &http.Transport{Dial: func(string, string) (net.Conn, error) { return net.Dial("tcp", s.Listener.Addr().String()) }}}
			a, err := ask(t.Context(), to, "192.0.2.1", aGateway())
			if c.want == "" && (err != nil || a.Listeners.FIX.Configured != 20) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%+v, %v; want %q", a, err, c.want)
			}
		})
	}
}

// TestEveryReasonHasARemedy: what order-gateway refuses for is told with what to do; Closed and Stopping are no refusals.
func TestEveryReasonHasARemedy(t *testing.T) {
	for _, m := range remedies {
		if m.reason == "" || m.remedy == "" {
			t.Errorf("%s has no remedy", m.of)
		}
	}
	if c := judgeRefused(serving(t, refusedPage(`{"reason":"Full","count":1,"text":"x","last":"2026-01-02T03:04:05Z"}`))); c.reason != "SessionsFull" || !strings.Contains(c.message, "raise spec.maxSessions") {
		t.Errorf("%+v", c)
	}
}

// askingPage is /status of order-gateway with listeners for WebSocket and PostgreSQL.
func askingPage(stream, sql string) string {
	return `{"grid":"trades","listeners":{"WebSocket":{"ready":true,"clients":260,` + stream + `"partitions":[{"partition":"p0"},{"partition":"p1"}]},"PostgreSQL":{` + sql + `"connections":3}}}`
}

func aPod(name, ip string, ready bool) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{PodIP: ip}}
	if ready {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return p
}

// TestPeersOfASilentPod: what is not known of a pod is not called good.
func TestPeersOfASilentPod(t *testing.T) {
	o := serving(t, askingPage("", ""), askingPage("", ""))
	o.gateway.Spec.Listeners, o.gateway.Spec.Streams = asking().Spec.Listeners, asking().Spec.Streams
	o.said[1].answer, o.said[1].silent = nil, errors.New("connection refused")
	if j := judgePeers(o); j.status != metav1.ConditionUnknown || j.reason != reasonNotAllAnswer {
		t.Errorf("%+v", j)
	}
}

// TestConditionsWithoutSessions: each listener is told of, and what is about FIX is not held against a gateway without.
func TestConditionsWithoutSessions(t *testing.T) {
	page := askingPage("", "")
	for name, c := range map[string]struct {
		page    string
		want    [6]string // as the conditions
		serving [2]int32
		text    string
	}{
		"all is well": {page, [6]string{"True/Serving", "True/Reachable", "True/NotServed", "False/NotServed", "True/Loaded", "True/Connected"}, [2]int32{1, 1}, ""},
		"a log is away": {strings.Replace(page, `{"partition":"p1"}`, `{"partition":"p1","error":"no primary"}`, 1),
			[6]string{"True/Serving", "False/PartitionsUnreachable", "True/NotServed", "False/NotServed", "True/Loaded", "True/Connected"}, [2]int32{0, 1}, "pod street-a: p1: no primary"},
		"it begins": {strings.Replace(page, `"ready":true`, `"ready":false`, 1),
			[6]string{"True/Serving", "False/PartitionsUnreachable", "True/NotServed", "False/NotServed", "True/Loaded", "True/Connected"}, [2]int32{0, 1}, "the logs are being looked for"},
		"no views": {askingPage("", `"notReady":["SQL: no views"],`),
			[6]string{"True/Serving", "False/PartitionsUnreachable", "True/NotServed", "False/NotServed", "True/Loaded", "True/Connected"}, [2]int32{1, 0}, "pod street-a: SQL: no views"},
		"clients file": {askingPage(`"fileError":"clients.json: clients[3]: topics is empty",`, ""),
			[6]string{"True/Serving", "True/Reachable", "True/NotServed", "False/NotServed", "False/FileInvalid", "True/Connected"}, [2]int32{1, 1}, "topics is empty; what was read before is in use"},
		"users file": {askingPage("", `"fileError":"users.json: users[0]",`),
			[6]string{"True/Serving", "True/Reachable", "True/NotServed", "False/NotServed", "False/FileInvalid", "True/Connected"}, [2]int32{1, 1}, "users.json: users[0]"},
		"an older pod": {`{"grid":"trades","listeners":{}}`, [6]string{"True/Serving", "True/Reachable", "True/NotServed", "False/NotServed", "True/Loaded", "True/Connected"}, [2]int32{0, 0}, ""},
		"a pod without its peer": {askingPage(`"peers":[{"address":"10.0.0.8:7441","connected":false},{"address":"10.0.0.7:7441","connected":false,"error":"401 Unauthorized"}],`, ""),
			[6]string{"True/Serving", "True/Reachable", "True/NotServed", "False/NotServed", "True/Loaded", "False/PeersUnreachable"}, [2]int32{1, 1},
			"pod street-a has no connection to street-c, and its clients do not get what is published there: 401 Unauthorized; see `kubectl get secret -n trading desk-peers`, the certificate of the listener and Service street-gateway-peers"},
		"a pod that is not found": {askingPage(`"peers":[{"address":"10.0.0.8:7441","connected":true}],`, ""),
			[6]string{"True/Serving", "True/Reachable", "True/NotServed", "False/NotServed", "True/Loaded", "False/PeersUnreachable"}, [2]int32{1, 1}, "street-c, and its clients do not get what is published there: its address is not known there"},
		"pods without names": {askingPage(`"peers":[{"address":"","connected":false,"error":"no such host"}],`, ""),
			[6]string{"True/Serving", "True/Reachable", "True/NotServed", "False/NotServed", "True/Loaded", "False/PeersUnreachable"}, [2]int32{1, 1}, "no such host"},
		"a pod that begins": {askingPage(`"peers":[{"address":"10.0.0.8:7441","connected":false},{"address":"10.0.0.7:7441","connected":true}],`, ""),
			[6]string{"True/Serving", "True/Reachable", "True/NotServed", "False/NotServed", "True/Loaded", "True/Connected"}, [2]int32{1, 1}, "clients of all 1 pods"},
	} {
		t.Run(name, func(t *testing.T) {
			o := serving(t, c.page)
			o.gateway.Spec.Streams = asking().Spec.Streams
			o.pods = []corev1.Pod{aPod("street-a", "10.0.0.6", true), aPod("street-b", "10.0.0.8", false)}
			if strings.Contains(c.page, "peers") {
				o.pods = append(o.pods, aPod("street-c", "10.0.0.7", true))
			}
			o.gateway.Spec.Listeners = asking().Spec.Listeners
			setStatus(o, metav1.NewTime(time.Unix(1e9, 0)))
			s := &o.gateway.Status
			told := ""
			for i, of := range conditions {
				got := meta.FindStatusCondition(s.Conditions, of.kind)
				told += got.Message + "\n"
				if string(got.Status)+"/"+got.Reason != c.want[i] {
					t.Errorf("%s is %+v, want %s", of.kind, got, c.want[i])
				}
			}
			for i, l := range s.Listeners {
				told += l.Message + "\n"
				if l.ServingPods != c.serving[i] || c.serving[i] == 1 && l.Clients != []int64{200, 2}[i] {
					t.Errorf("listener %+v, want %d pods that serve", l, c.serving[i])
				}
			}
			if len(s.Listeners) != 2 || !strings.Contains(told, c.text) {
				t.Errorf("%d listeners, and told is %q, want %q in it", len(s.Listeners), told, c.text)
			}
		})
	}
}
