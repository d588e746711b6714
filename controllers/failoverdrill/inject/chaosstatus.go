package inject

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// chaosStatus is the part of an object's status that every kind has.
type chaosStatus struct {
	Conditions []struct {
		Type   string `json:"type"`
		Status string `json:"status"`
		Reason string `json:"reason"`
	} `json:"conditions"`
	Experiment struct {
		DesiredPhase string        `json:"desiredPhase"`
		Records      []chaosRecord `json:"containerRecords"`
	} `json:"experiment"`
}

// chaosRecord is one pod or container of an object. Its phase is "Not Injected" or "Injected", with a suffix such as
// "/Wait" while something is under way.
type chaosRecord struct {
	ID          string       `json:"id"` // namespace/pod or namespace/pod/container
	SelectorKey string       `json:"selectorKey"`
	Phase       string       `json:"phase"`
	Events      []chaosEvent `json:"events"`
}

type chaosEvent struct {
	Type      string    `json:"type"`      // Succeeded, Failed
	Operation string    `json:"operation"` // Apply, Recover
	Message   string    `json:"message"`
	Timestamp time.Time `json:"timestamp"`
}

const (
	chaosNotInjected = "Not Injected"
	chaosStop        = "Stop"
	chaosFailed      = "Failed"
)

func statusOf(o *unstructured.Unstructured) (*chaosStatus, error) {
	s := &chaosStatus{}
	content, there := o.Object["status"]
	if !there {
		return s, nil
	}
	text, err := json.Marshal(content)
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err != nil {
		return nil, fmt.Errorf("status of %s %s does not have Chaos Mesh's format: %w", o.GetKind(), o.GetName(), err)
	}
	return s, nil
}

func (s *chaosStatus) is(condition string) bool {
	for _, c := range s.Conditions {
		if c.Type == condition {
			return c.Status == "True"
		}
	}
	return false
}

// trouble is the last message of every record whose last step failed.
func (s *chaosStatus) trouble() string {
	var out []string
	for _, r := range s.Experiment.Records {
		if e := r.last(); e != nil && e.Type == chaosFailed {
			if text := fmt.Sprintf("%s of %s failed: %s", strings.ToLower(e.Operation), r.ID, clip(e.Message, 300)); !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return strings.Join(out, "; ")
}

func (r *chaosRecord) last() *chaosEvent {
	if len(r.Events) == 0 {
		return nil
	}
	return &r.Events[len(r.Events)-1]
}

// stuck reports whether Chaos Mesh fails to inject what is to be recovered: it finishes an injection before it recovers
// it.
func (r *chaosRecord) stuck() bool {
	e := r.last()
	return strings.HasPrefix(r.Phase, chaosNotInjected+"/") && e != nil && e.Type == chaosFailed
}

// selectWithin is how long Chaos Mesh may take to find the pods of an object.
const selectWithin = 20 * time.Second

// readChaos derives a State from Chaos Mesh's status of one object.
func readChaos(o *unstructured.Unstructured, now time.Time) (State, error) {
	s, err := statusOf(o)
	if err != nil {
		return State{}, err
	}
	what, trouble := o.GetKind()+" "+o.GetName(), s.trouble()
	if trouble != "" {
		trouble = ": " + trouble
	}
	switch {
	case o.GetDeletionTimestamp() != nil:
		return State{Phase: Recovering, Message: what + " is being deleted" + trouble + remedy(trouble)}, nil
	case s.is("Paused"):
		return State{Phase: Pending, Message: what + " is paused by the annotation experiment.chaos-mesh.org/pause; remove it"}, nil
	case s.is("AllInjected"):
		return State{Phase: Injected, Message: what + " is injected into " + s.targets()}, nil
	case s.Experiment.DesiredPhase == chaosStop && s.is("AllRecovered"):
		return State{Phase: Gone, Ended: true, Message: what + " was recovered by Chaos Mesh: its duration is over"}, nil
	case s.Experiment.DesiredPhase == chaosStop:
		return State{Phase: Recovering, Ended: true, Message: what + " is being recovered, its duration is over" + trouble + remedy(trouble)}, nil
	case remedy(trouble) != "" && slices.ContainsFunc(s.Experiment.Records, func(r chaosRecord) bool { return r.persistent(now) }):
		return State{Phase: Failed, Message: what + trouble + remedy(trouble)}, nil
	case len(s.Experiment.Records) == 0 && now.Sub(o.GetCreationTimestamp().Time) > selectWithin:
		return State{Phase: Failed, Message: what + " found no pod: either Chaos Mesh's controller manager does not run, or it excludes namespace " + o.GetNamespace() +
			" (clusterScoped: false with another targetNamespace, or enableFilterNamespace without the annotation chaos-mesh.org/inject=enabled on the namespace)"}, nil
	}
	return State{Phase: Pending, Message: what + " is not injected yet" + trouble}, nil
}

func (s *chaosStatus) targets() string {
	var ids []string
	for _, r := range s.Experiment.Records {
		if !slices.Contains(ids, r.ID) {
			ids = append(ids, r.ID)
		}
	}
	return strings.Join(ids, ", ")
}

// remedies are matched by words of Chaos Mesh and of the programs its daemon runs, for failures that do not recover by
// themselves. The output of tc, ipset and iptables is in the daemon's log only.
var remedies = []struct {
	words  []string // all of them
	remedy string
}{
	{[]string{"unable to set tcs"}, "the node's kernel lacks a queueing discipline: load its modules sch_netem or sch_tbf, and sch_prio and sch_sfq for a fault with peers (some distributions have them in kernel-modules-extra or linux-modules-extra), or leave the fault out; the log of chaos-daemon on that node has the output of tc"},
	{[]string{"unable to flush ip sets"}, "the node's kernel has no ipset: load its modules ip_set, ip_set_hash_net, ip_set_hash_netport and ip_set_list_set; the log of chaos-daemon on that node has the output of ipset"},
	{[]string{"unable to set ip tables chains"}, "the node's kernel lacks what iptables needs: load its modules iptable_filter and xt_set; the log of chaos-daemon on that node has the output of iptables"},
	{[]string{"executable file not found"}, "the image of Chaos Mesh's daemon lacks the program that makes this fault; use the image of its release"},
	{[]string{"toda", "no such file or directory"}, "the image of Chaos Mesh's daemon lacks the program that makes this fault; use the image of its release"},
	{[]string{"cannot find daemonIP"}, "no chaos-daemon runs on the pod's node; check its DaemonSet's nodeSelector and tolerations"},
	{[]string{"`hostNetwork`"}, "Chaos Mesh does not touch the network of a pod that shares its node's"},
}

func remedy(trouble string) string {
	for _, r := range remedies {
		if !slices.ContainsFunc(r.words, func(w string) bool { return !strings.Contains(trouble, w) }) {
			return "; " + r.remedy
		}
	}
	return ""
}

// Chaos Mesh retries a failure at once, and some failures are transient: a container that is just starting.
const (
	failuresMeant = 3
	failingFor    = 3 * time.Second
)

// persistent reports whether a record's injection has failed so often and so long that it will not succeed.
func (r *chaosRecord) persistent(now time.Time) bool {
	n, first := 0, now
	for _, e := range slices.Backward(r.Events) {
		if e.Type != chaosFailed || e.Operation != "Apply" {
			break
		}
		n, first = n+1, e.Timestamp
	}
	return n >= failuresMeant && now.Sub(first) >= failingFor
}

// clip truncates a foreign text to at most n bytes.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
