package ordergateway

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/controllers/workload"
)

// Reasons of the conditions; those of SessionsRefused are in refused.go.
const (
	reasonGridNotFound       = "GridNotFound"
	reasonCredentialsMissing = "CredentialsMissing"
	reasonNameTaken          = "NameTaken"
	reasonApplyRefused       = "ApplyRefused"
	reasonNoAnswer           = "NoAnswer"
	reasonScaledToZero       = "ScaledToZero"
	reasonPodsNotReady       = "PodsNotReady"
	reasonFull               = "SessionsFull"
	reasonUpdating           = "Updating"
	reasonServing            = "Serving"
	reasonUnreachable        = "PartitionsUnreachable"
	reasonReachable          = "Reachable"
	reasonFileInvalid        = "FileInvalid"
	reasonLoaded             = "Loaded"
	reasonNotServed          = "NotServed"
	reasonViewsMissing       = "ViewsMissing"
	reasonNotEnforced        = "AuthorizationMissing"
	reasonPeersLost          = "PeersUnreachable"
	reasonConnected          = "Connected"
	reasonTokensNotTaken     = "TokensNotTaken"
)

// observation is what is known of a gateway in one pass.
type observation struct {
	gateway    *api.OrderGateway
	problem    problem
	deployment *appsv1.Deployment // nil: there is none
	pods       []corev1.Pod
	said       []said // of the pods that run
}

// judgement is the value of a condition.
type judgement struct {
	status          metav1.ConditionStatus
	reason, message string
}

// conditions are those of an OrderGateway, each computed from the observation alone.
var conditions = []struct {
	kind  string
	judge func(*observation) judgement
}{
	{api.ConditionReady, judgeReady},
	{api.ConditionGridReachable, judgeReachable},
	{api.ConditionSessionsLoaded, judgeLoaded},
	{api.ConditionSessionsRefused, judgeRefused},
	{api.ConditionClientsLoaded, judgeClients},
	{api.ConditionPeersConnected, judgePeers},
}

// reports is how the conditions are reported.
var reports = workload.Kind{
	Good: []workload.Good{
		{Condition: api.ConditionReady, Status: metav1.ConditionTrue},
		{Condition: api.ConditionGridReachable, Status: metav1.ConditionTrue},
		{Condition: api.ConditionSessionsLoaded, Status: metav1.ConditionTrue},
		{Condition: api.ConditionSessionsRefused, Status: metav1.ConditionFalse},
		{Condition: api.ConditionClientsLoaded, Status: metav1.ConditionTrue},
		{Condition: api.ConditionPeersConnected, Status: metav1.ConditionTrue},
	},
	Metrics: kindMetrics,
}

// answers are the pods that answered.
func (o *observation) answers() (list []said) {
	for _, s := range o.said {
		if s.answer != nil {
			list = append(list, s)
		}
	}
	return list
}

// sessionAnswers are those of them that serve FIX.
func (o *observation) sessionAnswers() (list []said) {
	for _, s := range o.answers() {
		if s.Listeners.FIX != nil {
			list = append(list, s)
		}
	}
	return list
}

// withoutSessions is what conditions about FIX sessions are where there are none.
func (o *observation) withoutSessions(good metav1.ConditionStatus) (judgement, bool) {
	return judgement{good, reasonNotServed, "there is no listener of protocol FIX"}, o.gateway.Spec.Listener(api.GatewayFIX) == nil
}

// noAnswer is what is not known because no pod reports.
func (o *observation) noAnswer() judgement {
	text := fmt.Sprintf("no pod of Deployment %s reports%s", api.GatewayName(o.gateway.Name), messages.First(o.pods, messages.PodTrouble))
	for _, s := range o.said {
		if s.silent != nil {
			text += fmt.Sprintf("; %s: %v", s.pod, s.silent)
			break
		}
	}
	return judgement{metav1.ConditionUnknown, reasonNoAnswer, text + fmt.Sprintf("; see `kubectl describe pod -n %s -l %s=%s`", o.gateway.Namespace, api.LabelGateway, o.gateway.Name)}
}

// judgeReady: every pod that is wanted serves and has room.
func judgeReady(o *observation) judgement {
	no := func(reason, format string, args ...any) judgement {
		return judgement{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
	}
	wanted := o.gateway.Spec.Pods()
	switch {
	case o.problem.reason != "":
		return no(o.problem.reason, "%s", o.problem.message)
	case wanted == 0:
		return no(reasonScaledToZero, "spec.replicas is 0: no client can connect; set it to 1 or more")
	}
	ready, updated := int32(0), int32(0)
	if d := o.deployment; d != nil && d.Status.ObservedGeneration >= d.Generation {
		ready, updated = d.Status.ReadyReplicas, d.Status.UpdatedReplicas
	}
	if ready < wanted {
		if j := judgeReachable(o); j.status == metav1.ConditionFalse {
			return no(j.reason, "%s", j.message)
		}
		return no(reasonPodsNotReady, "%d of %d pods serve%s; see `kubectl describe pod -n %s -l %s=%s`", ready, wanted, messages.First(o.pods, messages.PodTrouble), o.gateway.Namespace, api.LabelGateway, o.gateway.Name)
	}
	answers := o.answers()
	full := 0
	for _, s := range o.sessionAnswers() {
		if s.Listeners.FIX.Sessions >= s.Listeners.FIX.MaxSessions {
			full++
		}
	}
	switch {
	case len(answers) == 0:
		return o.noAnswer()
	case full == len(answers):
		return no(reasonFull, "every pod has spec.maxSessions, %d, sessions, and refuses more; raise it", o.gateway.Spec.MaxSessions)
	case updated < wanted || o.deployment.Status.Replicas > wanted:
		return judgement{metav1.ConditionTrue, reasonUpdating, fmt.Sprintf("%d pods serve; %d of %d are of the present template, the others are replaced one by one", ready, updated, wanted)}
	}
	return judgement{metav1.ConditionTrue, reasonServing, fmt.Sprintf("%d of %d pods serve", ready, wanted)}
}

// judgeReachable: every pod reaches the primary of every partition.
func judgeReachable(o *observation) judgement {
	if o.problem.reason == reasonGridNotFound {
		return judgement{metav1.ConditionFalse, o.problem.reason, o.problem.message}
	}
	answers := o.answers()
	if len(answers) == 0 {
		return o.noAnswer()
	}
	for _, s := range answers {
		if f := s.Listeners.FIX; f != nil && len(f.Unreachable) > 0 {
			return judgement{metav1.ConditionFalse, reasonUnreachable, fmt.Sprintf("pod %s does not reach %d partitions of OrderGrid %s, whose orders wait or end in a Logout: %s; see `kubectl describe og -n %s %s`",
				s.pod, len(f.Unreachable), o.gateway.Spec.GridRef.Name, messages.Cut(messages.Some(f.Unreachable), 512), o.gateway.Namespace, o.gateway.Spec.GridRef.Name)}
		}
		if lost := s.unreachable(); len(lost) > 0 {
			return judgement{metav1.ConditionFalse, reasonUnreachable, fmt.Sprintf("pod %s is not served by OrderGrid %s: %s; see `kubectl describe og -n %s %s`",
				s.pod, o.gateway.Spec.GridRef.Name, messages.Cut(messages.Some(lost), 512), o.gateway.Namespace, o.gateway.Spec.GridRef.Name)}
		}
	}
	return judgement{metav1.ConditionTrue, reasonReachable, fmt.Sprintf("%d pods reach all partitions of OrderGrid %s", len(answers), o.gateway.Spec.GridRef.Name)}
}

// judgeLoaded: what the pods serve is what the files have.
func judgeLoaded(o *observation) judgement {
	if j, none := o.withoutSessions(metav1.ConditionTrue); none {
		return j
	}
	answers := o.sessionAnswers()
	if len(answers) == 0 {
		return o.noAnswer()
	}
	for _, s := range answers {
		if text := s.Listeners.FIX.FileError; text != "" {
			return judgement{metav1.ConditionFalse, reasonFileInvalid, fmt.Sprintf("pod %s: %s; the sessions read before are served until the file of spec.sessionsFrom is mended", s.pod, messages.Cut(text, 512))}
		}
	}
	return judgement{metav1.ConditionTrue, reasonLoaded, fmt.Sprintf("%d FIX sessions are served", answers[0].Listeners.FIX.Configured)}
}

// setStatus makes status from the observation, and returns the conditions that changed.
func setStatus(o *observation, now metav1.Time) (changed []metav1.Condition) {
	g := o.gateway
	s := &g.Status
	s.ObservedGeneration, s.Selector = g.Generation, labels.SelectorFromSet(selector(g)).String()
	s.Endpoint = fmt.Sprintf("%s.%s.svc:%d", api.GatewayName(g.Name), g.Namespace, g.Spec.Listeners[0].Port)
	s.Replicas, s.ReadyReplicas, s.Sessions, s.Configured = 0, 0, 0, 0
	if o.deployment != nil {
		s.Replicas, s.ReadyReplicas = o.deployment.Status.Replicas, o.deployment.Status.ReadyReplicas
	}
	for _, a := range o.sessionAnswers() {
		s.Sessions += a.Listeners.FIX.Sessions
		s.Configured = max(s.Configured, a.Listeners.FIX.Configured)
	}
	s.Sessions, s.Listeners = messages.Coarse(s.Sessions), listenerStatus(o)
	for _, of := range conditions {
		j := of.judge(o)
		changed = append(changed, workload.Set(&s.Conditions, g.Generation, now, metav1.Condition{Type: of.kind, Status: j.status, Reason: j.reason, Message: j.message})...)
	}
	return changed
}
