//go:build e2e

package drills

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// negativeControl drills a grid that was built to lose orders: the certificate has to find exactly as many as the nodes
// say they dropped.
func negativeControl(ctx context.Context, f *field) {
	f.loadFaulty(ctx)
	f.grow(ctx, "  shards: 1\n", `  shards: 1
  image: ordergrid.dev/grid-node-faulty:dev
  podTemplate:
    spec:
      containers:
        - name: grid-node
          env: [{name: ORDERGRID_FAULTY_DROP_EVERY, value: "1000"}]
`)
	// A hand-over ends no process, so that every node still knows what it has dropped.
	d := &api.FailoverDrill{}
	d.Name = "negative-control"
	d.Spec.Faults = []api.DrillFault{{Name: "hand-over", Type: api.FaultHandOver}}
	f.create(ctx, d)
	d = f.follow(ctx, d.Name)
	c := d.Status.Certificate
	if c == nil {
		f.Fatalf("no certificate: %+v", d.Status.Conditions)
	}
	dropped := f.dropped(ctx)
	f.Logf("dropped by the nodes %d, found lost %d; verdict %s: %s", dropped, c.Lost, c.Verdict, c.Reason)
	if dropped == 0 || c.Lost != dropped || c.Verdict != api.DrillViolated {
		f.Errorf("the nodes dropped %d acknowledged orders, the certificate says lost %d, %s", dropped, c.Lost, c.Verdict)
	}
	f.validates(ctx, d)
}

// dropped asks every pod how many orders it has dropped.
func (f *field) dropped(ctx context.Context) (total int64) {
	f.Helper()
	for _, pod := range f.pods(ctx) {
		url := fmt.Sprintf("http://%s:9400%s", pod.Status.PodIP, nodestatus.Path)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			f.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			f.Fatal(err)
		}
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		resp.Body.Close()
		var answer struct {
			Faulty struct {
				Dropped int64 `json:"dropped"`
			} `json:"faulty"`
		}
		if err == nil {
			err = json.Unmarshal(body, &answer)
		}
		if err != nil {
			f.Fatalf("GET %s: %v", url, err)
		}
		total += answer.Faulty.Dropped
	}
	return total
}

func (f *field) pods(ctx context.Context) []corev1.Pod {
	f.Helper()
	var list corev1.PodList
	if err := f.Kube.Get(ctx, &list, "pods", "-n", namespace, "-l", "ordergrid.dev/grid="+grid); err != nil {
		f.Fatal(err)
	}
	return list.Items
}

// oneCopy kills the only copy there is: the certificate must report the loss.
func oneCopy(ctx context.Context, f *field) {
	// With nothing downstream, what is in its memory is all there is.
	manifest, err := os.ReadFile("testdata/grid.yaml")
	if err != nil {
		f.Fatal(err)
	}
	_, sink, _ := strings.Cut(string(manifest), "  sinks:\n")
	f.grow(ctx, "replicas: 2", "replicas: 1", "  sinks:\n"+sink, "")
	d := &api.FailoverDrill{}
	d.Name = "one-copy"
	d.Spec.Safety.LastCopy, d.Spec.Safety.WhenNotRedundant = api.LastCopyTake, api.NotRedundantAllow
	d.Spec.SteadyState.RedundantWithin.Duration = 20 * time.Second
	d.Spec.SteadyState.FailedOrders = api.FailedOrdersAllowed
	d.Spec.Traffic.RequestTimeout.Duration = 5 * time.Second
	d.Spec.Faults = []api.DrillFault{{Name: "kill-the-only-copy", Type: api.FaultContainerKill}}
	f.create(ctx, d)
	d = f.follow(ctx, d.Name)
	c := d.Status.Certificate
	if c == nil {
		f.Fatalf("no certificate: %+v", d.Status.Conditions)
	}
	f.Logf("lost %d of %d acknowledged; verdict %s: %s", c.Lost, c.Acknowledged, c.Verdict, c.Reason)
	if c.Lost == 0 || c.Verdict == api.DrillPass || c.Verdict == api.DrillMissed {
		f.Errorf("the memory of the only copy is gone, the certificate says lost %d, %s: %s", c.Lost, c.Verdict, c.Reason)
	}
	f.clean(ctx)
}
