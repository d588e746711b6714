package inject

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// ChaosMesh makes faults with the objects of a Chaos Mesh that is installed in the cluster.
type ChaosMesh struct {
	// Client reads and writes without a cache: an object missing in a cache would be created a second time.
	Client client.Client
	// ProbeImage has order-probe, which detects the features of a node's kernel; ProbePullPolicy belongs to it.
	ProbeImage      string
	ProbePullPolicy corev1.PullPolicy
	// ProbeNamespace is where these Jobs run; empty means the drill's.
	ProbeNamespace string
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	features featureMemory
}

var _ Injector = (*ChaosMesh)(nil)

// Provider implements Injector.
func (c *ChaosMesh) Provider() Provider { return ProviderChaosMesh }

func (c *ChaosMesh) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// Inject implements Injector.
func (c *ChaosMesh) Inject(ctx context.Context, f *Fault) error {
	objects, err := c.objects(ctx, f)
	if err != nil {
		return err
	}
	for _, o := range objects {
		err := c.Client.Create(ctx, o.DeepCopy(), client.FieldValidation(metav1.FieldValidationStrict))
		switch {
		case err == nil:
		case apierrors.IsAlreadyExists(err):
			if err := c.checkOurs(ctx, f, o); err != nil {
				return err
			}
		case refused(err):
			return permanent("Chaos Mesh refuses %s %s: %w", o.GetKind(), o.GetName(), err)
		case meta.IsNoMatchError(err):
			return permanent("Chaos Mesh's %s does not exist: %w", o.GetKind(), err)
		default:
			return fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// refused by a schema or a webhook, which returns one of these.
func refused(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsForbidden(err) && errors.As(err, &status) && strings.Contains(status.Status().Message, "admission webhook") ||
		errors.As(err, &status) && status.Status().Code == http.StatusUnprocessableEntity
}

func (c *ChaosMesh) checkOurs(ctx context.Context, f *Fault, o *unstructured.Unstructured) error {
	there := blank(o)
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(o), there); err != nil {
		return client.IgnoreNotFound(err) // it was just deleted; the next call creates it
	}
	switch {
	case there.GetLabels()[LabelDrillUID] != string(f.Drill.UID):
		return permanent("%s %s in namespace %s exists and does not belong to this drill; delete it, or give the drill another name", o.GetKind(), o.GetName(), o.GetNamespace())
	case there.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s %s is still being deleted", o.GetKind(), o.GetName())
	}
	return nil
}

func blank(like *unstructured.Unstructured) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(like.GroupVersionKind())
	return o
}

// objects of a fault, for the present pods. Fails if one of the pods has been replaced.
func (c *ChaosMesh) objects(ctx context.Context, f *Fault) ([]*unstructured.Unstructured, error) {
	live := *f
	var err error
	if live.Pods, err = present(ctx, c.Client, f.Pods); err != nil {
		return nil, err
	}
	if live.Peers, err = present(ctx, c.Client, f.Peers); err != nil {
		return nil, err
	}
	s := &surroundings{}
	switch {
	case faultTypes[f.Spec.Type].packets:
		s.planes, err = planes(ctx, c.Client, &live)
	case f.Spec.Type == api.FaultAPIServerPartition:
		s.apiServer, err = c.apiServer(ctx)
	case len(live.Pods) > 0:
		s.volume = sinkVolume(&live.Pods[0])
	}
	if err != nil {
		return nil, err
	}
	return chaosObjects(&live, s)
}

// present reads the pods anew: a name alone may refer to a later pod by now.
func present(ctx context.Context, c client.Reader, pods []corev1.Pod) ([]corev1.Pod, error) {
	out := make([]corev1.Pod, len(pods))
	for i := range pods {
		err := c.Get(ctx, client.ObjectKeyFromObject(&pods[i]), &out[i])
		switch {
		case apierrors.IsNotFound(err):
			return nil, permanent("pod %s is gone; nothing was injected", pods[i].Name)
		case err != nil:
			return nil, err
		case pods[i].UID != "" && out[i].UID != pods[i].UID:
			return nil, permanent("pod %s has been replaced (UID %s, expected %s); nothing was injected", pods[i].Name, out[i].UID, pods[i].UID)
		}
	}
	return out, nil
}

// sinkVolume is the mount path of the sink's files in the grid node, the first if there are several.
func sinkVolume(pod *corev1.Pod) string {
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if c.Name != gridContainer {
			continue
		}
		if at := slices.Index(c.Args, "--sink-dir"); at >= 0 && at+1 < len(c.Args) {
			return c.Args[at+1]
		}
		if at := slices.Index(c.Args, "--file-sink"); at >= 0 && at+1 < len(c.Args) {
			_, dir, _ := strings.Cut(c.Args[at+1], "=")
			return dir
		}
	}
	return ""
}

// apiServer is how pods reach the API server: the Service's addresses, and its endpoints with their ports.
func (c *ChaosMesh) apiServer(ctx context.Context) ([]string, error) {
	var service corev1.Service
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, &service); err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	var slicesOf discoveryv1.EndpointSliceList
	if err := c.Client.List(ctx, &slicesOf, client.InNamespace(metav1.NamespaceDefault), client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes"}); err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	return apiServerTargets(&service, slicesOf.Items), nil
}

// State implements Injector.
func (c *ChaosMesh) State(ctx context.Context, f *Fault) (State, error) {
	objects, err := c.ofStep(ctx, f)
	if err != nil {
		return State{}, err
	}
	states := make([]State, 0, len(objects))
	for i := range objects {
		s, err := readChaos(&objects[i], c.now())
		if err != nil {
			return State{}, err
		}
		states = append(states, s)
	}
	return worst(states), nil
}

// order of phases when a fault has several parts: it is injected once all are, and gone once all are.
var order = []Phase{Failed, Recovering, Pending, Injected, Gone}

// worst is the state of a fault of several parts.
func worst(states []State) State {
	if len(states) == 0 {
		return State{Phase: Gone, Message: "there is no object of this fault"}
	}
	slices.SortStableFunc(states, func(a, b State) int { return slices.Index(order, a.Phase) - slices.Index(order, b.Phase) })
	out := State{Phase: states[0].Phase}
	var messages []string
	for _, s := range states {
		messages = append(messages, s.Message)
		out.Ended = out.Ended || s.Ended
	}
	out.Message = clip(strings.Join(messages, "; "), 1000)
	return out
}

// Recover implements Injector.
func (c *ChaosMesh) Recover(ctx context.Context, f *Fault) error {
	objects, err := c.ofStep(ctx, f)
	if err != nil {
		return err
	}
	return c.remove(ctx, objects)
}

// Leftovers implements Injector.
func (c *ChaosMesh) Leftovers(ctx context.Context, d Drill) ([]string, error) {
	objects, err := c.ofDrill(ctx, d)
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range objects {
		text := fmt.Sprintf("%s %s/%s", objects[i].GetKind(), objects[i].GetNamespace(), objects[i].GetName())
		if s, err := readChaos(&objects[i], c.now()); err == nil {
			text += ": " + s.Message
		}
		out = append(out, text)
	}
	jobs, err := c.featureJobs(ctx, d)
	for i := range jobs {
		out = append(out, fmt.Sprintf("Job %s/%s, which detects the features of a node", jobs[i].Namespace, jobs[i].Name))
	}
	return out, err
}

// RecoverAll implements Injector.
func (c *ChaosMesh) RecoverAll(ctx context.Context, d Drill) error {
	objects, err := c.ofDrill(ctx, d)
	if err != nil {
		return err
	}
	return errors.Join(c.remove(ctx, objects), c.removeFeatureJobs(ctx, d))
}

// ofStep are the existing objects of one step, known by their names: only the names tell which parts it had.
func (c *ChaosMesh) ofStep(ctx context.Context, f *Fault) ([]unstructured.Unstructured, error) {
	all, err := c.ofDrill(ctx, f.Drill)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(o unstructured.Unstructured) bool {
		part, ours := strings.CutPrefix(o.GetName(), f.name())
		return !ours || part != "" && part != "-to" && part != "-from"
	}), nil
}

// ofDrill are the objects with the drill's label. A kind that is not installed has none.
func (c *ChaosMesh) ofDrill(ctx context.Context, d Drill) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	for _, kind := range chaosKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(chaosGroup.WithKind(kind + "List"))
		err := c.Client.List(ctx, list, client.InNamespace(d.Namespace), client.MatchingLabels{LabelDrillUID: string(d.UID)})
		if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("list %s of drill %s: %w", kind, d.Name, err)
		}
		out = append(out, list.Items...)
	}
	return out, nil
}
