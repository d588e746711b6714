package witness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
)

// Observer is the Witness that asks Kubernetes and, over HTTP, the grid nodes.
type Observer struct {
	// Client reads without a cache, which could be old.
	Client client.Reader
	// Nodes queries grid nodes; nodestatus.NewClient makes one. Its timeout should be a few seconds.
	Nodes *http.Client
}

var _ Witness = (*Observer)(nil)

// nodeTimeout is after how long a grid node counts as not answering.
const nodeTimeout = 1500 * time.Millisecond

// eye is how faults of some types are observed: see collects, before the fault and again while it is in place, and
// judge compares, without I/O.
type eye struct {
	see   func(o *Observer, ctx context.Context, f *inject.Fault, before *sight) (*sight, error)
	judge func(f *inject.Fault, before, now *sight) Result
}

// eyes are the witnesses of all types.
var eyes = map[api.DrillFaultType]eye{
	api.FaultPodKill:            {(*Observer).seePods, judgeGone},
	api.FaultPodDelete:          {(*Observer).seePods, judgeGone},
	api.FaultContainerKill:      {(*Observer).seePods, judgeRestarted},
	api.FaultPodFailure:         {(*Observer).seePods, judgeFailing},
	api.FaultNetworkPartition:   {(*Observer).seeLinks, judgeLinks},
	api.FaultNetworkDelay:       {(*Observer).seeLinks, judgeLinks},
	api.FaultNetworkLoss:        {(*Observer).seeLinks, judgeLinks},
	api.FaultNetworkDuplicate:   {(*Observer).seeLinks, judgeLinks},
	api.FaultNetworkCorrupt:     {(*Observer).seeLinks, judgeLinks},
	api.FaultNetworkBandwidth:   {(*Observer).seeLinks, judgeLinks},
	api.FaultClockSkew:          {(*Observer).seeClocks, judgeClocks},
	api.FaultCPUStress:          {(*Observer).seeLoad, judgeCPU},
	api.FaultMemoryStress:       {(*Observer).seeLoad, judgeMemory},
	api.FaultIODelay:            {(*Observer).seeSinks, judgeSinks},
	api.FaultIOError:            {(*Observer).seeSinks, judgeSinks},
	api.FaultAPIServerPartition: {(*Observer).seeArbiters, judgeArbiters},
	api.FaultAPIServerOutage:    {(*Observer).seeArbiters, judgeArbiters},
	api.FaultNodePowerOff:       {(*Observer).seeNodes, judgeNodes},
	api.FaultNodeLinkDown:       {(*Observer).seeNodes, judgeNodes},
	api.FaultHandOver:           {(*Observer).seePrimaries, judgePrimaries},
	api.FaultRollingUpdate:      {(*Observer).seeGrid, judgeGrid},
}

func eyeFor(t api.DrillFaultType) (eye, error) {
	e, known := eyes[t]
	if !known {
		return eye{}, fmt.Errorf("no witness is known for faults of type %s", t)
	}
	return e, nil
}

// sight is one observation, as far as the type of fault needs it. It is kept in the drill's status, hence the short
// names.
type sight struct {
	At         time.Time         `json:"at"`
	Pods       []podSight        `json:"pods,omitempty"`
	Links      []linkSight       `json:"links,omitempty"`
	Clocks     []clockSight      `json:"clocks,omitempty"`
	Loads      []loadSight       `json:"loads,omitempty"`
	Sinks      []sinkSight       `json:"sinks,omitempty"`
	Arbiters   []arbiterSight    `json:"arbiters,omitempty"`
	Nodes      []nodeSight       `json:"nodes,omitempty"`
	Partitions []primarySight    `json:"partitions,omitempty"`
	UIDs       []string          `json:"uids,omitempty"`   // the beginnings of them
	Boots      map[string]string `json:"boots,omitempty"`  // of the processes that answered
	Silent     map[string]string `json:"silent,omitempty"` // pods that did not answer, and why
}

// Baseline implements Witness.
func (o *Observer) Baseline(ctx context.Context, f *inject.Fault) (Before, error) {
	e, err := eyeFor(f.Spec.Type)
	if err != nil {
		return nil, err
	}
	s, err := e.see(o, ctx, f, nil)
	if err != nil {
		return nil, err
	}
	if len(s.Silent) > 0 && len(s.Pods)+len(s.Nodes)+len(s.Partitions)+len(s.UIDs) == 0 {
		return nil, fmt.Errorf("grid nodes do not answer before the fault: %s", silences(s.Silent))
	}
	content, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	if len(content) > MaxBefore {
		return nil, fmt.Errorf("what was seen before the fault has %d bytes, at most %d can be kept: the fault concerns too many pods at once; target fewer", len(content), MaxBefore)
	}
	return content, nil
}

// Look implements Witness.
func (o *Observer) Look(ctx context.Context, f *inject.Fault, kept Before) (Result, error) {
	e, err := eyeFor(f.Spec.Type)
	if err != nil {
		return Result{}, err
	}
	before := &sight{}
	if err := json.Unmarshal(kept, before); err != nil {
		return Result{}, fmt.Errorf("the baseline of the fault cannot be read: %w", err)
	}
	now, err := e.see(o, ctx, f, before)
	if err != nil {
		// The executor's own witness counts where no other is possible: it may have switched the API server off.
		if reported := f.Reported.Seen; reported != "" {
			return Result{Seen: true, Message: clip(reported)}, nil
		}
		return Result{}, err
	}
	r := e.judge(f, before, now)
	if !r.Seen && f.Reported.Seen != "" && inject.TypeOf(f.Spec.Type).ExecutorSees {
		r = Result{Seen: true, Message: f.Reported.Seen + "; besides: " + r.Message}
	}
	r.Message = clip(r.Message)
	return r, nil
}

// maxMessage is the limit of a step's status.
const maxMessage = 1000

func clip(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return text[:maxMessage-3] + "..."
}

// target is a grid node to query.
type target struct{ pod, ip string }

func (p target) http() string { return net.JoinHostPort(p.ip, strconv.Itoa(api.HTTPPort)) }

// targets are the pods of a fault with their addresses; missing ones are read from the API server, unless known from the
// baseline.
func (o *Observer) targets(ctx context.Context, pods []corev1.Pod) ([]target, error) {
	out := make([]target, 0, len(pods))
	for i := range pods {
		ip := pods[i].Status.PodIP
		if ip == "" {
			live := &corev1.Pod{}
			if err := o.Client.Get(ctx, client.ObjectKeyFromObject(&pods[i]), live); err != nil {
				return nil, err
			}
			ip = live.Status.PodIP
		}
		out = append(out, target{pods[i].Name, ip})
	}
	return out, nil
}

// askAll queries all of them concurrently. Nodes that do not answer are noted in the sight.
func askAll[T any](ctx context.Context, s *sight, targets []target, ask func(context.Context, target) (T, error)) map[string]T {
	var mu sync.Mutex
	var all sync.WaitGroup
	out := make(map[string]T, len(targets))
	for _, p := range targets {
		all.Go(func() {
			answer, err := ask(ctx, p)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				out[p.pod] = answer
				return
			}
			if s.Silent == nil {
				s.Silent = map[string]string{}
			}
			s.Silent[p.pod] = shortError(err)
		})
	}
	all.Wait()
	return out
}

// soon bounds a query to a node that may not answer at all.
func soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, nodeTimeout)
}

func shortError(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer within " + nodeTimeout.String()
	}
	text := err.Error()
	return text[:min(len(text), 120)]
}
