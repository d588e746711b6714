package inject

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
)

// Executor makes faults through a service outside Kubernetes, for faults Kubernetes has no means for.
type Executor struct {
	// Name as given to the operator; the provider is "Executor/" and this.
	Name string
	// Service is its client.
	Service *executor.Client
	// Reader finds the network of the pods' orders.
	Reader client.Reader

	mu      sync.Mutex
	offered *executor.Capabilities
	asked   time.Time
}

var _ Injector = (*Executor)(nil)

// capabilitiesFor is how long an executor's capabilities are cached.
const capabilitiesFor = 30 * time.Second

// Provider implements Injector.
func (e *Executor) Provider() Provider { return ProviderExecutor + Provider(e.Name) }

func (e *Executor) capabilities(ctx context.Context) (*executor.Capabilities, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.offered != nil && time.Since(e.asked) < capabilitiesFor {
		return e.offered, nil
	}
	offered, err := e.Service.Capabilities(ctx)
	if err == nil {
		e.offered, e.asked = offered, time.Now()
	}
	return offered, err
}

// Supports implements Injector. An executor that does not answer supports nothing.
func (e *Executor) Supports(ctx context.Context, scope *Scope) (map[api.DrillFaultType]Answer, error) {
	out := map[api.DrillFaultType]Answer{}
	offered, err := e.capabilities(ctx)
	for i := range scope.Faults {
		f := &scope.Faults[i]
		answer := Answer{No, fmt.Sprintf("executor %s does not answer: %v", e.Name, err)}
		if err == nil {
			answer = e.offers(f, offered, scope.Nodes)
		}
		out[f.Type] = worse(out[f.Type], answer)
	}
	return out, nil
}

func (e *Executor) offers(f *api.DrillFault, offered *executor.Capabilities, nodes []string) Answer {
	at := slices.IndexFunc(offered.Types, func(o executor.Offer) bool { return o.Type == string(f.Type) })
	if at < 0 {
		return Answer{No, fmt.Sprintf("executor %s does not offer %s", e.Name, f.Type)}
	}
	o := &offered.Types[at]
	for _, node := range nodes {
		if len(o.Nodes) > 0 && !slices.Contains(o.Nodes, node) && f.Type != api.FaultAPIServerOutage {
			return Answer{No, fmt.Sprintf("executor %s offers %s on %s only, and a pod of the grid runs on %s", e.Name, f.Type, strings.Join(o.Nodes, ", "), node)}
		}
	}
	if f.Duration != nil {
		if longest := longestDeadline(o); deadline(f.Type, f.Duration.Duration) > longest {
			return Answer{No, fmt.Sprintf("executor %s keeps %s for %ds at most, and fault %s lasts %s and needs %s to spare; shorten its duration", e.Name, f.Type, longest, f.Name, f.Duration.Duration, Margin)}
		}
	}
	return Answer{Verdict: Yes}
}

func longestDeadline(o *executor.Offer) int {
	if o.MaxDeadlineSeconds > 0 {
		return o.MaxDeadlineSeconds
	}
	return executor.MaxDeadlineSeconds
}

// deadline is after how many seconds the executor recovers a fault by itself. For an outage of the API server that is
// its end: the operator cannot request it, because it lost the API server as well and with it its lease.
func deadline(t api.DrillFaultType, d time.Duration) int {
	if t != api.FaultAPIServerOutage {
		d += Margin
	}
	return int(math.Ceil(d.Seconds()))
}

// id of a fault at the executor. Namespace and name are not enough: a drill of the same name may follow.
func (f *Fault) id() string {
	return fmt.Sprintf("%s%d-%s", f.Drill.idPrefix(), f.Step, f.Drill.short())
}

func (d Drill) idPrefix() string { return d.Namespace + "-" + d.Name + "-" }

// owns reports whether an id belongs to this drill. Namespace and name may have hyphens, so the UID decides.
func (d Drill) owns(id string) bool {
	rest, ours := strings.CutPrefix(id, d.idPrefix())
	step, ours2 := strings.CutSuffix(rest, "-"+d.short())
	_, err := strconv.ParseUint(step, 10, 31)
	return ours && ours2 && err == nil
}

// Inject implements Injector.
func (e *Executor) Inject(ctx context.Context, f *Fault) error {
	request, err := e.request(ctx, f)
	if err != nil {
		return err
	}
	if err := request.Validate(); err != nil {
		return permanent("the request to executor %s would be invalid: %w", e.Name, err)
	}
	s, err := e.Service.Put(ctx, f.id(), request)
	if err != nil {
		return e.explain(err)
	}
	if s.State == executor.Failed {
		return permanent("executor %s could not inject it, and nothing of it is left: %s", e.Name, s.Message)
	}
	return nil
}

// explain distinguishes a refusal, which is permanent, from an unreachable executor.
func (e *Executor) explain(err error) error {
	var refusal *executor.Error
	if errors.As(err, &refusal) && refusal.Code >= 400 && refusal.Code < 500 && refusal.Code != http.StatusRequestTimeout && refusal.Code != http.StatusTooManyRequests {
		return permanent("executor %s: %w", e.Name, err)
	}
	return fmt.Errorf("executor %s: %w", e.Name, err)
}

func (e *Executor) request(ctx context.Context, f *Fault) (*executor.Fault, error) {
	r := &executor.Fault{Type: string(f.Spec.Type), DeadlineSeconds: deadline(f.Spec.Type, f.Duration)}
	if !executor.IsNetwork(r.Type) {
		if f.Spec.Type != api.FaultAPIServerOutage {
			r.Nodes = f.Nodes
		}
		return r, nil
	}
	live := *f
	var err error
	if live.Pods, err = present(ctx, e.Reader, f.Pods); err != nil {
		return nil, err
	}
	if live.Peers, err = present(ctx, e.Reader, f.Peers); err != nil {
		return nil, err
	}
	on, err := planes(ctx, e.Reader, &live)
	if err != nil {
		return nil, err
	}
	device, err := commonDevice(&surroundings{planes: on}, live.Pods)
	if err != nil {
		return nil, err
	}
	r.Namespace, r.Pods, r.Peers = f.Drill.Namespace, podsOf(live.Pods, on), podsOf(live.Peers, on)
	for _, p := range r.Pods {
		if !slices.Contains(r.Nodes, p.Node) {
			r.Nodes = append(r.Nodes, p.Node)
		}
	}
	r.Parameters, err = parameters(f)
	r.Parameters.Interface = device
	return r, err
}

func podsOf(pods []corev1.Pod, on map[string]Plane) (out []executor.Pod) {
	for i := range pods {
		p := &pods[i]
		out = append(out, executor.Pod{Name: p.Name, IP: on[p.Name].Address.String(), Node: p.Spec.NodeName, UID: string(p.UID)})
	}
	return out
}

func parameters(f *Fault) (executor.Parameters, error) {
	p := executor.Parameters{Direction: executor.DirectionBoth}
	n := f.Spec.Network
	if n == nil {
		return p, permanent("%s: network is not given", f.Spec.Type)
	}
	if v, err := strconv.ParseFloat(n.Correlation.Number(), 64); err != nil || v != 0 {
		return p, permanent("%s: executors do not support network.correlation, but %s is set; remove it", f.Spec.Type, n.Correlation)
	}
	if n.Direction != "" {
		p.Direction = string(n.Direction)
	}
	if n.Latency != nil {
		p.Latency = &metav1.Duration{Duration: n.Latency.Duration}
	}
	if n.Jitter != nil {
		p.Jitter = &metav1.Duration{Duration: n.Jitter.Duration}
	}
	for _, v := range []struct {
		text api.Percentage
		to   *float64
	}{{n.Loss, &p.Loss}, {n.Duplicate, &p.Duplicate}, {n.Corrupt, &p.Corrupt}} {
		var err error
		if *v.to, err = strconv.ParseFloat(v.text.Number(), 64); err != nil {
			return p, permanent("%s: %q is not a part of the packets", f.Spec.Type, v.text)
		}
	}
	return p, nil
}

// State implements Injector.
func (e *Executor) State(ctx context.Context, f *Fault) (State, error) {
	s, err := e.Service.Get(ctx, f.id())
	if errors.Is(err, executor.ErrUnknown) {
		return State{Phase: Gone, Message: "executor " + e.Name + " does not know it"}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("executor %s: %w", e.Name, err)
	}
	return e.read(s), nil
}

func (e *Executor) read(s *executor.Status) State {
	out := State{Phase: map[executor.State]Phase{
		executor.Injecting: Pending, executor.Injected: Injected, executor.Recovering: Recovering, executor.Recovered: Gone, executor.Failed: Gone,
	}[s.State]}
	out.Message = clip(fmt.Sprintf("executor %s: %s: %s", e.Name, strings.ToLower(string(s.State)), s.Message), 500)
	if s.Witness.Seen {
		out.Seen = clip("executor "+e.Name+": "+s.Witness.Message, 500)
	}
	// Nothing is left of a failed fault. Its message is included.
	out.Ended = s.State == executor.Failed || s.State == executor.Recovered && s.Deadline != nil && s.Recovered != nil && !s.Recovered.Before(*s.Deadline)
	return out
}

// Recover implements Injector.
func (e *Executor) Recover(ctx context.Context, f *Fault) error {
	if _, err := e.Service.Delete(ctx, f.id()); err != nil {
		return fmt.Errorf("executor %s: %w", e.Name, err)
	}
	return nil
}

// ofDrill are the faults of a drill of which something is left.
func (e *Executor) ofDrill(ctx context.Context, d Drill) ([]executor.Status, error) {
	all, err := e.Service.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("executor %s: %w", e.Name, err)
	}
	return slices.DeleteFunc(all, func(s executor.Status) bool { return s.State.Over() || !d.owns(s.ID) }), nil
}

// Leftovers implements Injector.
func (e *Executor) Leftovers(ctx context.Context, d Drill) ([]string, error) {
	faults, err := e.ofDrill(ctx, d)
	var out []string
	for i := range faults {
		out = append(out, clip(fmt.Sprintf("%s %s at executor %s: %s: %s", faults[i].Type, faults[i].ID, e.Name, faults[i].State, faults[i].Message), 500))
	}
	return out, err
}

// RecoverAll implements Injector.
func (e *Executor) RecoverAll(ctx context.Context, d Drill) error {
	faults, err := e.ofDrill(ctx, d)
	for i := range faults {
		if _, e2 := e.Service.Delete(ctx, faults[i].ID); e2 != nil {
			err = errors.Join(err, fmt.Errorf("executor %s: %w", e.Name, e2))
		}
	}
	return err
}
