//go:build e2e

package witness

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
)

// A fault that the kernel cannot do is injected anyway, as without a preflight. The status reports what is missing,
// everything of it goes again, and the pod can be given other faults afterwards, without a restart.
func TestAWedgedPodIsFreed(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	s := open(ctx, t)
	delay := api.DrillFault{Name: "delay", Type: api.FaultNetworkDelay, Duration: &metav1.Duration{Duration: time.Minute},
		Network: &api.NetworkFault{Latency: &metav1.Duration{Duration: 5 * time.Millisecond}}}
	answers := s.answers(ctx, []api.DrillFault{delay})
	mesh := s.injectors[0]
	if a := answers[mesh][delay.Type]; a.Verdict != inject.No || !strings.Contains(a.Message, "sch_netem") {
		t.Skipf("the nodes can delay packets: %+v", a)
	}
	f := s.fault(ctx, delay)
	if err := mesh.Inject(ctx, f); err != nil {
		t.Fatal(err)
	}
	var message string
	s.until(ctx, "is reported as failed", func() error {
		st, err := mesh.State(ctx, f)
		if err == nil && st.Phase != inject.Failed {
			err = fmt.Errorf("%+v", st)
		}
		message = st.Message
		return err
	})
	t.Log(message)
	if !strings.Contains(message, "sch_netem") {
		t.Errorf("the message does not contain the next step")
	}
	s.takeBack(ctx, mesh, f)
	work := &unstructured.Unstructured{}
	work.SetAPIVersion("chaos-mesh.org/v1alpha1")
	work.SetKind("PodNetworkChaos")
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(&f.Pods[0]), work); err == nil {
		tcs, _, _ := unstructured.NestedSlice(work.Object, "spec", "tcs")
		sets, _, _ := unstructured.NestedSlice(work.Object, "spec", "ipsets")
		if failed, _, _ := unstructured.NestedString(work.Object, "status", "failedMessage"); failed != "" || len(tcs)+len(sets) > 0 {
			t.Errorf("left in the pod's list of work: %v %v, failure %q", tcs, sets, failed)
		}
	}
	pods := s.pods(ctx)
	s.show(ctx, mesh, api.DrillFault{Name: "partition", Type: api.FaultNetworkPartition, Duration: &metav1.Duration{Duration: 15 * time.Second}})
	for _, p := range pods {
		for _, now := range s.pods(ctx) {
			if now.Name == p.Name && now.UID != p.UID {
				t.Errorf("pod %s was replaced", p.Name)
			}
		}
	}
}
