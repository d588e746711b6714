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
	// Client reads without a cache, which could be behind.
	Client client.Reader
	// Nodes asks grid nodes; nodestatus.NewClient makes one. Its time-out should be a few seconds.
	Nodes *http.Client
}

var _ Witness = (*Observer)(nil)

// nodeTimeout is after how long a grid node counts as not answering.
const nodeTimeout = 1500 * time.Millisecond

// eye is how faults of some types are looked at: see collects, before the fault and again while it is there, and judge,
// which asks nobody, compares.
type eye struct {
	see   func(o *Observer, ctx context.Context, f *inject.Fault, before *sight) (*sight, error)
	judge func(f *inject.Fault, before, now *sight) Result
}

func eyeFor(t api.DrillFaultType) (eye, error) {
	switch t {
	case api.FaultPodKill, api.FaultPodDelete:
		return eye{(*Observer).seePods, judgeGone}, nil
	case api.FaultContainerKill:
		return eye{(*Observer).seePods, judgeRestarted}, nil
	case api.FaultPodFailure:
		return eye{(*Observer).seePods, judgeFailing}, nil
	case api.FaultNetworkPartition, api.FaultNetworkDelay, api.FaultNetworkLoss, api.FaultNetworkDuplicate, api.FaultNetworkCorrupt, api.FaultNetworkBandwidth:
		return eye{(*Observer).seeLinks, judgeLinks}, nil
	case api.FaultClockSkew:
		return eye{(*Observer).seeClocks, judgeClocks}, nil
	case api.FaultCPUStress:
		return eye{(*Observer).seeLoad, judgeCPU}, nil
	case api.FaultMemoryStress:
		return eye{(*Observer).seeLoad, judgeMemory}, nil
	case api.FaultIODelay, api.FaultIOError:
		return eye{(*Observer).seeSinks, judgeSinks}, nil
	case api.FaultAPIServerPartition, api.FaultAPIServerOutage:
		return eye{(*Observer).seeArbiters, judgeArbiters}, nil
	case api.FaultNodePowerOff, api.FaultNodeLinkDown:
		return eye{(*Observer).seeNodes, judgeNodes}, nil
	case api.FaultHandOver:
		return eye{(*Observer).seePrimaries, judgePrimaries}, nil
	case api.FaultRollingUpdate:
		return eye{(*Observer).seeGrid, judgeGrid}, nil
	}
	return eye{}, fmt.Errorf("no witness is known for faults of type %s", t)
}

// sight is what was seen at one moment, as far as the type of fault asks for it. It is kept in the drill's status, hence
// the short names.
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
		return Result{}, fmt.Errorf("what was kept from before the fault cannot be read: %w", err)
	}
	now, err := e.see(o, ctx, f, before)
	if err != nil {
		// The executor's own witness counts where nothing else can be asked: it may have switched the API server off.
		if said := f.Said.Seen; said != "" {
			return Result{Seen: true, Message: clip(said)}, nil
		}
		return Result{}, err
	}
	r := e.judge(f, before, now)
	if !r.Seen && f.Said.Seen != "" && executorsWord(f.Spec.Type) {
		r = Result{Seen: true, Message: f.Said.Seen + "; besides: " + r.Message}
	}
	r.Message = clip(r.Message)
	return r, nil
}

// executorsWord says for which faults an executor's own figures are a witness: it counts packets on the very way, or has
// switched off what nobody else can ask. Chaos Mesh's word never is one.
func executorsWord(t api.DrillFaultType) bool {
	switch t {
	case api.FaultNetworkDelay, api.FaultNetworkLoss, api.FaultNetworkDuplicate, api.FaultNetworkCorrupt,
		api.FaultNodePowerOff, api.FaultNodeLinkDown, api.FaultAPIServerOutage:
		return true
	}
	return false
}

// maxMessage fits the status of a step.
const maxMessage = 1000

func clip(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return text[:maxMessage-3] + "..."
}

// person is a grid node to ask.
type person struct{ pod, ip string }

func (p person) http() string { return net.JoinHostPort(p.ip, strconv.Itoa(api.HTTPPort)) }

// people are the pods of a fault with their addresses; what the fault does not say is read from the API server, unless it
// was already known before.
func (o *Observer) people(ctx context.Context, pods []corev1.Pod) ([]person, error) {
	out := make([]person, 0, len(pods))
	for i := range pods {
		ip := pods[i].Status.PodIP
		if ip == "" {
			live := &corev1.Pod{}
			if err := o.Client.Get(ctx, client.ObjectKeyFromObject(&pods[i]), live); err != nil {
				return nil, err
			}
			ip = live.Status.PodIP
		}
		out = append(out, person{pods[i].Name, ip})
	}
	return out, nil
}

// askAll asks all of them at once. Who does not answer is noted in the sight.
func askAll[T any](ctx context.Context, s *sight, people []person, ask func(context.Context, person) (T, error)) map[string]T {
	var mu sync.Mutex
	var all sync.WaitGroup
	out := make(map[string]T, len(people))
	for _, p := range people {
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

// soon bounds a question to a node that may not answer at all.
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
