// Package recovery proves what only an administrator may decide, with everything real but the kubelet: an API server with etcd, the
// operator, and grid nodes as processes that are killed.
package recovery

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/runbook"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

// TestBothProcessesDie: nothing is promoted by itself, the condition has the next step, and once an administrator has done it the
// grid serves in a new lineage and becomes redundant.
func TestBothProcessesDie(t *testing.T) {
	c := newCluster(t)
	c.must(c.submit(20, time.Minute))
	c.kill(0)
	c.kill(1)
	c.start(0)
	c.start(1)
	c.until("the loss is suspected", func() bool { return c.is(api.ConditionDataLossSuspected, metav1.ConditionTrue) })
	c.wantEvent("NoInSyncMemberLeft")
	for i := range replicas {
		if p := c.partition(i); p.Status.Lineage != 1 {
			t.Fatalf("%s: %+v", p.Name, p.Status)
		}
	}
	if err := c.submit(1, time.Second); err == nil {
		t.Fatal("an order was acknowledged by a process that was promoted without the orders before it")
	}
	c.must(runbook.AcceptLoss(t.Context(), c.kube, c.partition(0), c.partition(1)))
	c.until("a second lineage", func() bool {
		for i := range replicas {
			p := c.partition(i)
			if _, there := p.Annotations[api.AnnotationAcceptDataLoss]; there || p.Status.Lineage != 2 || p.Spec.AcceptDataLossEpoch != 0 {
				return false
			}
		}
		return true
	})
	c.wantEvent("NewLineage")
	c.until("the pair is redundant again", func() bool {
		return c.is(api.ConditionRedundant, metav1.ConditionTrue) && c.is(api.ConditionDataLossSuspected, metav1.ConditionFalse)
	})
	c.must(c.submit(20, time.Minute))
}

// TestEtcdGoesBack: the records are restored from a backup under a pair that serves on.
func TestEtcdGoesBack(t *testing.T) {
	c := newCluster(t)
	resource := api.GroupVersion.WithResource("gridpartitions").GroupResource()
	var backup [replicas]envtest.Stored
	var epochs [replicas]int64
	for i := range replicas {
		backup[i] = envtest.Save(t, resource, c.ns, c.partition(i).Name)
	}
	c.kill(1)
	c.until("node 0 serves alone", func() bool {
		return len(c.partition(0).Status.InSync) == 1 && len(c.partition(1).Status.InSync) == 1
	})
	c.start(1)
	c.until("both are in sync again, and the primaries are spread", c.spread)
	for i := range replicas {
		epochs[i] = c.partition(i).Status.Epoch
		backup[i].Restore(t)
	}
	c.until("the regression is seen", func() bool { return c.is(api.ConditionConfigurationRegressed, metav1.ConditionTrue) })
	c.wantEvent("RecordBehind")
	c.must(c.submit(20, time.Minute)) // the data path does not need the records
	for i := range replicas {
		p := c.partition(i)
		if p.Status.Epoch >= epochs[i] {
			t.Fatalf("%s climbed to epoch %d by itself", p.Name, p.Status.Epoch)
		}
	}
	c.must(runbook.Reassert(t.Context(), c.kube, c.http[:], c.partition(0), c.partition(1)))
	c.until("the records are ahead again", func() bool {
		for i := range replicas {
			p := c.partition(i)
			if _, there := p.Annotations[api.AnnotationReassert]; there || p.Status.Epoch <= epochs[i] || p.Spec.ReassertChangeID != "" {
				return false
			}
		}
		return c.is(api.ConditionConfigurationRegressed, metav1.ConditionFalse)
	})
	c.wantEvent("ConfigurationReasserted")
	c.must(c.submit(20, time.Minute))
	c.kill(0) // the configuration can change again
	c.until("node 1 serves alone", func() bool {
		return c.partition(0).Status.Primary.PodName == podName(1) && c.partition(1).Status.Primary.PodName == podName(1)
	})
	c.must(c.submit(20, time.Minute))
}

// TestHandOverOnRequest: the annotation moves a primary, and moves it back.
func TestHandOverOnRequest(t *testing.T) {
	c := newCluster(t)
	c.must(c.submit(20, time.Minute))
	c.until("each pod is primary of one", c.spread)
	epoch := c.partition(0).Status.Epoch
	c.annotate(0, api.AnnotationPreferredPod, podName(1))
	c.until("the primary has moved", func() bool { return c.partition(0).Status.Primary.PodName == podName(1) })
	if p := c.partition(0); p.Status.Epoch != epoch+1 || len(p.Status.InSync) != replicas || p.Status.Lineage != 1 {
		t.Errorf("after a hand-over, which costs one epoch and no copy: %+v", p.Status)
	}
	c.must(c.submit(20, time.Minute))
	// The wish outlives the death of the process it names.
	c.kill(1)
	c.until("node 0 serves alone", func() bool { return c.partition(0).Status.Primary.PodName == podName(0) })
	c.start(1)
	c.until("the primary has moved again", func() bool { return c.partition(0).Status.Primary.PodName == podName(1) })
	c.must(c.submit(20, time.Minute))
}

// TestPlannedStop: a process that is asked to stop hands over while orders flow, and gets its partition back when it has
// returned. No order fails, and no copy is missing that does not have to be.
func TestPlannedStop(t *testing.T) {
	c := newCluster(t)
	c.until("each pod is primary of one", c.spread)
	flow := c.flow()
	for i := range replicas {
		epoch := c.partition(i).Status.Epoch
		c.stop(i)
		if p := c.partition(i); p.Status.Primary.PodName == podName(i) || p.Status.Epoch < epoch+2 || len(p.Status.InSync) != replicas-1 {
			t.Errorf("after the stop of its primary, a hand-over and a retirement: %+v, epoch was %d", p.Status, epoch)
		}
		c.start(i)
		c.until("the primary is back", c.spread)
	}
	if c.is(api.ConditionDataLossSuspected, metav1.ConditionTrue) {
		t.Error("a loss is suspected after planned stops")
	}
	n, err := flow()
	if err != nil || n == 0 {
		t.Errorf("%d orders acknowledged: %v", n, err)
	}
	t.Logf("%d orders acknowledged, none failed", n)
}
