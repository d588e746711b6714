package main

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// pods puts the two pods of the stage on Kubernetes nodes with the namespace's name in theirs.
func (s *stage) pods() (nodes [2]string) {
	s.t.Helper()
	for i := range 2 {
		nodes[i] = "worker-" + string(rune('0'+i)) + "-" + s.ns
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: api.PodName("trades", 0, int32(i)), Namespace: s.ns,
			Labels: map[string]string{api.LabelGrid: "trades", "app.kubernetes.io/component": "grid-node"}},
			Spec: corev1.PodSpec{NodeName: nodes[i], Containers: []corev1.Container{{Name: "grid-node", Image: "grid-node:x",
				Env: []corev1.EnvVar{{Name: "SINK_PASSWORD", Value: "hunter2"}, {Name: "GOGC", Value: "50"}}}}}}
		s.must(s.cl.Create(s.t.Context(), p))
	}
	return nodes
}

// handsOver plays operator and nodes: the requested hand-over happens.
func (s *stage) handsOver(name string) chan struct{} {
	return s.once(name, api.AnnotationPreferredPod, func(pod string) {
		s.update(name, func(p *api.GridPartition) { p.Spec.PreferredPod = pod })
		p := s.partition(name)
		if p.Status.Primary.PodName != pod {
			s.configure(name, p.Status.InSync[1], p.Status.InSync[0])
		}
	})
}

func TestDrain(t *testing.T) {
	s := newStage(t)
	nodes := s.pods()
	done := s.handsOver("trades-p0")
	out, err := s.run("drain", nodes[0])
	<-done
	s.want(out, err, 0, "trades-p0: from trades-s0-0 to trades-s0-1, requested\n", "trades-p0: primary is trades-s0-1, epoch 3\n", "no primary is left on trades-s0-0, after ")
	if strings.Contains(out, "trades-p1") {
		t.Errorf("the partition of the other pod was changed:\n%s", out)
	}
	out, err = s.run("drain", nodes[0]) // again: nothing to do
	s.want(out, err, 0, "no primary is left")
	if strings.Contains(out, "asked") || s.partition("trades-p0").Status.Epoch != 3 {
		t.Errorf("done twice:\n%s", out)
	}

	out, err = s.run("drain", "trades-s0-0", "--undo")
	s.want(out, err, 0, "trades-p0: its primary may be on any pod of shard 0 again", "1 annotations removed")
	if _, there := s.partition("trades-p0").Annotations[api.AnnotationPreferredPod]; there {
		t.Error("--undo left the annotation")
	}
}

// TestDrainKeepsAway: a partition that is elsewhere only because of a failover does not return to the drained pod.
func TestDrainKeepsAway(t *testing.T) {
	s := newStage(t)
	s.pods()
	const name = "trades-p1"
	p := s.partition(name)
	s.configure(name, p.Status.InSync[1], p.Status.InSync[0]) // trades-s0-0 serves, trades-s0-1 is preferred
	done := s.handsOver(name)
	out, err := s.run("drain", "trades-s0-1")
	<-done
	s.want(out, err, 0, "no primary is left on trades-s0-1")
	if p := s.partition(name); p.Spec.PreferredPod != "trades-s0-0" || p.Status.Epoch != 3 {
		t.Errorf("preferred %s, epoch %d", p.Spec.PreferredPod, p.Status.Epoch)
	}
}

func TestDrainSaysWhatIsLeft(t *testing.T) {
	s := newStage(t)
	s.pods()
	out, err := s.run("drain", "trades-s0-0", "--timeout", "400ms") // the operator is down
	s.want(out, err, 1, "trades-s0-0: 1 left after 400ms:", "  trades-p0: the operator has not applied trades-s0-1 (spec.preferredPod is trades-s0-0); is it running?")

	s.update("trades-p0", func(p *api.GridPartition) { p.Spec.PreferredPod = "trades-s0-1" })
	out, err = s.run("drain", "trades-s0-0", "--timeout", "400ms") // the nodes do not act
	s.want(out, err, 1, "trades-s0-0 is still primary; trades-s0-1 has to be in sync for spec.timing.handOverDelay")

	s.configure("trades-p0", member(0, "00000000000000aa")) // no backup to hand over to
	out, err = s.run("drain", "trades-s0-0", "--timeout", "400ms")
	s.want(out, err, 1, "no other pod is in sync; kubectl ordergrid status trades shows which is missing")

	s.update("trades-p0", func(p *api.GridPartition) { p.Spec.PreferredPod = "trades-s0-0" })
	done := s.once("trades-p1", api.AnnotationPreferredPod, func(string) { // the operator refuses: waiting does not help
		s.update("trades-p1", func(p *api.GridPartition) { delete(p.Annotations, api.AnnotationPreferredPod) })
	})
	out, err = s.run("drain", "trades-s0-1", "--timeout", "1m")
	<-done
	s.want(out, err, 1, "trades-p1: the annotation ordergrid.dev/preferred-pod was changed or refused")
}

func TestDrainUsage(t *testing.T) {
	s := newStage(t)
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"drain"}, "0 arguments, allowed: the name of one Kubernetes node or grid pod"},
		{[]string{"drain", "a", "--timeout", "0s"}, "--timeout: value 0s, allowed: more than 0s"},
		{[]string{"partitions", "trades", "--interval", "1ms"}, "--interval: value 1ms, allowed: 100ms or more"},
		{[]string{"partitions", "trades", "-o", "xml"}, `--output: value "xml", allowed: table, wide, json, yaml`},
	} {
		_, err := s.run(tc.args...)
		var usage usageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: error %v, want a usage error with %q", tc.args, err, tc.want)
		}
	}
	if _, err := s.run("drain", "nowhere"); err == nil || !strings.Contains(err.Error(), `"nowhere" is neither a grid pod of namespace`) {
		t.Errorf("error %v", err)
	}
	s.must(s.cl.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "empty-" + s.ns}}))
	out, err := s.run("drain", "empty-"+s.ns)
	s.want(out, err, 0, "no grid pod of the namespace runs there")
}

// nodeAt serves the pages of a grid node on 127.0.0.<n>, the address of its pod, and makes the pod run there.
func (s *stage) nodeAt(ip, pod string, pages map[string]string) {
	s.t.Helper()
	l, err := new(net.ListenConfig).Listen(s.t.Context(), "tcp", ip+":9400")
	if err != nil {
		s.t.Skipf("%v: grid nodes answer at port 9400 of %s, free it (another grid on this machine?)", err, ip)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, ok := pages[r.URL.Path]; ok {
			_, _ = w.Write([]byte(text))
			return
		}
		http.NotFound(w, r)
	})}}
	srv.Start()
	s.t.Cleanup(srv.Close)
	p := &corev1.Pod{}
	s.must(s.cl.Get(s.t.Context(), clientKey(s.ns, pod), p))
	p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = corev1.PodRunning, ip, []corev1.PodIP{{IP: ip}}
	s.must(s.cl.Status().Update(s.t.Context(), p))
}
