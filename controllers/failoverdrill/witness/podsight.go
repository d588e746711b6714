package witness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
)

// gridContainer is the observed container of a grid's pod.
const gridContainer = "grid-node"

// podSight is a pod as reported by the API server.
type podSight struct {
	Name      string `json:"n"`
	UID       string `json:"u,omitempty"` // empty: no pod has that name
	Container string `json:"c,omitempty"` // id of the grid node's container
	Restarts  int32  `json:"r,omitempty"`
	Image     string `json:"i,omitempty"` // that it should run
	Ready     string `json:"y,omitempty"` // condition Ready of the pod
	Ended     string `json:"e,omitempty"` // that container does not run: why
}

func (o *Observer) seePods(ctx context.Context, f *inject.Fault, before *sight) (*sight, error) {
	s := &sight{At: time.Now()}
	for i := range f.Pods {
		pod := &corev1.Pod{}
		err := o.Client.Get(ctx, client.ObjectKeyFromObject(&f.Pods[i]), pod)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		seen := podSight{Name: f.Pods[i].Name}
		if err == nil {
			seen = lookAtPod(pod)
		}
		if before == nil && seen.UID == "" {
			return nil, fmt.Errorf("pod %s is gone before the fault", seen.Name)
		}
		s.Pods = append(s.Pods, seen)
	}
	if len(s.Pods) == 0 {
		return nil, fmt.Errorf("the fault hits no pod")
	}
	return s, nil
}

func lookAtPod(pod *corev1.Pod) podSight {
	s := podSight{Name: pod.Name, UID: string(pod.UID)}
	for _, c := range pod.Spec.Containers {
		if c.Name == gridContainer {
			s.Image = c.Image
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == gridContainer {
			s.Container, s.Restarts = c.ContainerID, c.RestartCount
			if t := c.State.Terminated; t != nil {
				s.Ended = fmt.Sprintf("terminated (%s, exit code %d)", t.Reason, t.ExitCode)
			} else if w := c.State.Waiting; w != nil {
				s.Ended = "waiting (" + w.Reason + ")"
			}
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			s.Ready = string(c.Status)
		}
	}
	return s
}

// every judges each pod of the baseline, and is seen once all are.
func every(before, now *sight, judge func(was, is podSight) (seen bool, what string)) Result {
	r := Result{Seen: len(before.Pods) > 0}
	var messages []string
	for _, was := range before.Pods {
		at := slices.IndexFunc(now.Pods, func(p podSight) bool { return p.Name == was.Name })
		if at < 0 {
			r.Seen = false
			messages = append(messages, was.Name+" was not looked at")
			continue
		}
		seen, what := judge(was, now.Pods[at])
		r.Seen = r.Seen && seen
		messages = append(messages, what)
	}
	r.Message = strings.Join(messages, "; ")
	return r
}

// judgeGone: the earlier pod has no object any more; another of its name has another UID.
func judgeGone(_ *inject.Fault, before, now *sight) Result {
	return every(before, now, func(was, is podSight) (bool, string) {
		switch is.UID {
		case was.UID:
			return false, fmt.Sprintf("pod %s with UID %s is still there", was.Name, was.UID)
		case "":
			return true, fmt.Sprintf("pod %s with UID %s is gone, and there is no other of its name yet", was.Name, was.UID)
		}
		return true, fmt.Sprintf("pod %s with UID %s is gone, UID %s has its name", was.Name, was.UID, is.UID)
	})
}

// judgeRestarted: the kubelet counted a restart in the same pod, or reports another container.
func judgeRestarted(_ *inject.Fault, before, now *sight) Result {
	return every(before, now, func(was, is podSight) (bool, string) {
		switch {
		case is.UID != was.UID:
			return false, fmt.Sprintf("pod %s was replaced as a whole (UID %s, before %s); its container should have been killed alone", was.Name, is.UID, was.UID)
		case is.Restarts > was.Restarts, is.Container != "" && was.Container != "" && is.Container != was.Container:
			return true, fmt.Sprintf("container %s of pod %s was replaced: restarts %d, before %d; id %s, before %s", gridContainer, was.Name, is.Restarts, was.Restarts, shortID(is.Container), shortID(was.Container))
		}
		return false, fmt.Sprintf("container %s of pod %s is the earlier one: restarts %d, id %s", gridContainer, was.Name, is.Restarts, shortID(is.Container))
	})
}

// judgeFailing: the pod has another image, and the earlier container does not run any more. During its grace period it
// still serves, no longer ready.
func judgeFailing(_ *inject.Fault, before, now *sight) Result {
	return every(before, now, func(was, is podSight) (bool, string) {
		what := fmt.Sprintf("pod %s is to run image %s (before %s), ready %q, container %s (before %s)", was.Name, is.Image, was.Image, is.Ready, shortID(is.Container), shortID(was.Container))
		if is.Ended != "" {
			what += " " + is.Ended
		}
		return is.UID == was.UID && is.Image != was.Image && (is.Ended != "" || is.Container != was.Container), what
	})
}

// shortID is the customary prefix of a container's id.
func shortID(id string) string {
	if _, hash, found := strings.Cut(id, "://"); found {
		id = hash
	}
	return id[:min(12, len(id))]
}

func silences(silent map[string]string) string {
	var out []string
	for _, pod := range slices.Sorted(maps.Keys(silent)) {
		out = append(out, pod+": "+silent[pod])
	}
	return strings.Join(out, "; ")
}
