package ordergateway

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
)

// Reasons of SessionsRefused that are no refusal of a pod.
const (
	reasonNoneRefused  = "NoneRefused"
	reasonNotAllAnswer = "NotAllAnswer"
)

// remedies has, for each reason of order-gateway, that of the condition, and what to do; the first of them that applies
// is told.
var remedies = []struct{ of, reason, remedy string }{
	{"Full", "SessionsFull", "raise spec.maxSessions"},
	{"NoGrid", "GridSilent", "the grid does not answer for the session; see GridReachable, and the text"},
	{"Credentials", "CredentialsWrong", "compare the password or the certificate of the counterparty with the entry of the session, in spec.sessionsFrom"},
	{"Sequence", "SequenceWrong", "the counterparty has to log on with the number that the Logout named, or with ResetSeqNumFlag=Y"},
	{"SendingTime", "ClockWrong", "compare the clock of the counterparty with that of the Kubernetes node"},
	{"InUse", "SessionInUse", "the session has a connection: of a second engine with the same CompIDs, or of one that was cut and ends with the next heartbeats"},
	{"Fields", "LogonInvalid", "the counterparty has to mend its Logon"},
	{"UnknownSession", "SessionUnknown", "add the session to the file of spec.sessionsFrom, or correct the CompIDs of the counterparty; if no counterparty is to connect from there, close the port to it"},
	{"NoLogon", "NotFIX", "something that is no counterparty reaches the port; close it to who has no business there"},
	{"Garbled", "NotFIX", "something that is no counterparty reaches the port, or speaks TLS where there is none; close it to who has no business there"},
	{"Timeout", "NotFIX", "connections are opened without a Logon; close the port to who has no business there"},
}

// judgeRefused: logons were refused within the last five minutes. While they are, nothing else of the gateway is called
// well: it may be the one counterparty that matters.
func judgeRefused(o *observation) judgement {
	if j, none := o.withoutSessions(metav1.ConditionFalse); none {
		return j
	}
	answers := o.sessionAnswers()
	if len(answers) == 0 {
		return o.noAnswer()
	}
	total, sum := int64(0), map[string]refusal{}
	for _, s := range answers {
		for _, r := range s.Listeners.FIX.Refused {
			one := sum[r.Reason]
			if r.Last.Before(one.Last) || one.Session != "" && r.Session == "" {
				r.Session, r.Text, r.Last = one.Session, one.Text, one.Last
			}
			r.Count += one.Count
			sum[r.Reason] = r
		}
	}
	for _, r := range sum {
		total += r.Count
	}
	if total == 0 {
		if len(answers) < len(o.said) {
			return judgement{metav1.ConditionUnknown, reasonNotAllAnswer, fmt.Sprintf("%d of %d pods do not report", len(o.said)-len(answers), len(o.said))}
		}
		return judgement{metav1.ConditionFalse, reasonNoneRefused, "no logon was refused within the last five minutes"}
	}
	reason, remedy, last := "LogonsRefused", "see /status of the pods, at port "+fmt.Sprint(api.GatewayHTTPPort), refusal{}
	for _, m := range remedies {
		if r, is := sum[m.of]; is {
			reason, remedy, last = m.reason, m.remedy, r
			break
		}
	}
	// The number changes with each logon: it is coarse, or status would be written with each.
	text := fmt.Sprintf("%d or more logons were refused within the last five minutes", messages.Coarse(total))
	if last.Session != "" {
		text += ", of session " + last.Session
	}
	return judgement{metav1.ConditionTrue, reason, fmt.Sprintf("%s: %s; %s", text, messages.Cut(last.Text, 300), remedy)}
}
