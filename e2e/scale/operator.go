package scale

import (
	"context"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/internal/histogram"
	"github.com/ordergrid/ordergrid/internal/proc"
	"github.com/ordergrid/ordergrid/internal/scrape"
)

// operator is the operator, a process.
type operator struct {
	*program
	metrics string // host:port
}

// operate starts it with the arguments of the chart's Deployment.
func (c *cluster) operate(ctx context.Context, path string) (*operator, error) {
	deployment := &appsv1.Deployment{}
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: operatorAccount}, deployment); err != nil {
		return nil, err
	}
	var port proc.HeldPorts
	address, err := port.Take("127.0.0.1", 0)
	if err != nil {
		return nil, err
	}
	c.group.Add(func() error { port.Release(); return nil })
	args := append(deployment.Spec.Template.Spec.Containers[0].Args,
		"--metrics-bind-address="+address, "--metrics-insecure", "--health-probe-bind-address=0", "--leader-election-namespace="+operatorNamespace)
	o := &operator{metrics: address}
	o.program, err = c.run("operator", path, []string{"KUBECONFIG=" + c.file("operator.kubeconfig")}, args...)
	return o, err
}

// reading is the operator's own metrics at one moment, and the kernel's of all processes.
type reading struct {
	at         time.Time
	reconciles float64
	errors     float64
	questions  float64
	waiting    float64 // grids in the queue or being reconciled
	requests   float64 // sent to the API server, watches included
	heap       float64 // bytes in use
	took       *histogram.Native
	queued     *histogram.Native
	processes  map[string]usage
}

const (
	theController = "ordergrid"
	nativeTime    = "controller_runtime_reconcile_time_seconds"
	queueTime     = "workqueue_queue_duration_seconds"
)

// read asks the operator for its metrics.
func (o *operator) read(ctx context.Context) (*reading, error) {
	r, err := scrape.Get(ctx, &http.Client{Timeout: 20 * time.Second}, o.metrics)
	if err != nil {
		return nil, err
	}
	out := &reading{
		at:         r.At,
		reconciles: r.Total("controller_runtime_reconcile_total", "controller", theController),
		errors:     r.Total("controller_runtime_reconcile_errors_total", "controller", theController),
		questions:  r.Total("ordergrid_operator_node_questions_total"),
		waiting:    r.Total("workqueue_depth", "name", theController) + r.Total("controller_runtime_active_workers", "controller", theController),
		requests:   r.Total("rest_client_requests_total"),
		heap:       r.Total("go_memstats_heap_inuse_bytes"),
	}
	if out.took, err = r.Native(nativeTime, "controller", theController); err == nil {
		out.queued, err = r.Native(queueTime, "name", theController)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// readAll also asks the kernel for what all processes have used.
func (o *operator) readAll(ctx context.Context) (*reading, error) {
	r, err := o.read(ctx)
	if err == nil {
		r.processes, err = children()
	}
	return r, err
}

// settled waits until the operator has nothing to do: its queue is empty and it has reconciled nothing for a while. It
// returns the reading when that began.
func (o *operator) settled(ctx context.Context, atLeast float64) (since *reading, err error) {
	err = until(ctx, "the operator has nothing to do", func(ctx context.Context) (bool, error) {
		now, err := o.read(ctx)
		if err != nil {
			since = nil
			return false, err
		}
		if since == nil || now.reconciles != since.reconciles || now.waiting > 0 {
			if now.processes, err = children(); err != nil {
				return false, err
			}
			since = now
		}
		return since.waiting == 0 && since.reconciles >= atLeast && now.at.Sub(since.at) > calm, nil
	})
	return since, err
}

// quantiles of the observations between two readings, in milliseconds; 0 if there are none.
func quantiles(before, after *histogram.Native) (p50, p99 float64) {
	after = after.Clone()
	if after.Sub(before); after.Count == 0 {
		return 0, 0
	}
	return 1000 * after.Quantile(0.5), 1000 * after.Quantile(0.99)
}
