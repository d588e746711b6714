package kube

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
)

// Recorder posts Kubernetes Events about GridPartitions. Event only queues; Run posts at a
// bounded rate and reports how many were dropped.
type Recorder struct {
	client    *rest.RESTClient
	arbiter   *Arbiter // knows the objects' UIDs, by which kubectl describe finds events
	namespace string
	pod       string
	log       *slog.Logger
	queue     chan corev1.Event
	limit     flowcontrol.PassiveRateLimiter
	dropped   atomic.Uint64
}

var _ arbiter.Recorder = (*Recorder)(nil)

const (
	eventQueue   = 64
	eventsPerSec = 1
	eventBurst   = 20

	// Most events report a change of configuration in progress: the API server should
	// handle that first.
	eventDelay = 500 * time.Millisecond
)

// NewRecorder returns a recorder for a's namespace; pod is named as the source.
func NewRecorder(cfg *rest.Config, a *Arbiter, pod string, log *slog.Logger) (*Recorder, error) {
	scheme := runtime.NewScheme()
	gv := corev1.SchemeGroupVersion
	scheme.AddKnownTypes(gv, &corev1.Event{})
	metav1.AddToGroupVersion(scheme, gv)
	c := rest.CopyConfig(cfg)
	c.APIPath, c.GroupVersion = "/api", &gv
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.UserAgent = "grid-node"
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	return &Recorder{client: client, arbiter: a, namespace: a.namespace, pod: pod, log: log, queue: make(chan corev1.Event, eventQueue),
		limit: flowcontrol.NewTokenBucketPassiveRateLimiter(eventsPerSec, eventBurst)}, nil
}

// Event implements arbiter.Recorder.
func (r *Recorder) Event(partition, reason, message string, warning bool) {
	now := metav1.Now()
	ev := corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: partition + "." + strconv.FormatInt(now.UnixNano(), 16)},
		InvolvedObject: corev1.ObjectReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "GridPartition",
			Namespace: r.namespace, Name: partition},
		Reason: reason, Message: cut(message, 1024), Type: corev1.EventTypeNormal,
		Source:         corev1.EventSource{Component: "grid-node", Host: r.pod},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		ReportingController: "ordergrid.dev/grid-node", ReportingInstance: r.pod, Action: reason,
	}
	if warning {
		ev.Type = corev1.EventTypeWarning
	}
	if !r.limit.TryAccept() {
		r.dropped.Add(1)
		return
	}
	select {
	case r.queue <- ev:
	default:
		r.dropped.Add(1)
	}
}

// Run posts queued events until ctx ends.
func (r *Recorder) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case ev := <-r.queue:
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Until(ev.FirstTimestamp.Add(eventDelay))):
				r.post(ctx, &ev)
			}
		}
	}
}

func (r *Recorder) post(ctx context.Context, ev *corev1.Event) {
	if n := r.dropped.Swap(0); n > 0 {
		ev.Message = cut(ev.Message, 900) + fmt.Sprintf(" (%d events were dropped before this one)", n)
	}
	ev.InvolvedObject.UID = r.arbiter.uid(ev.InvolvedObject.Name)
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := r.client.Post().Namespace(r.namespace).Resource("events").Body(ev).Do(ctx).Error(); err != nil {
		r.log.Warn("cannot post an event; the log and the metrics have it too", "event", ev.Reason, "message", ev.Message, "reason", err)
	}
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}
