package model

import "fmt"

// Action is one step, as a trace shows it.
type Action struct {
	Kind kind
	P, Q ID
	N, E uint8
	Next Config
}

type kind uint8

const (
	actSubmit kind = iota
	actStore
	actReceiveAck
	actCommit
	actRead
	actEcho
	actAnswer
	actLand
	actLearn
	actJoin
	actDiscard
	actDiverge
	actEnterAckSet
	actDropLearner
	actPropose
	actTakeOver
	actShrink
	actClose
	actRefused
	actForget
	actLost
	actCrash
	actReplace
	actMove
	kinds int = iota
)

func (k kind) String() string {
	return [...]string{
		"Submit", "Store", "ReceiveAck", "Commit", "Read", "Echo", "Answer", "Land", "Learn", "Join", "Discard", "Diverge", "EnterAckSet",
		"DropLearner", "Propose", "TakeOver", "Shrink", "Close", "Refused", "Forget", "Lost", "Crash", "Replace", "Move",
	}[k]
}

// fault reports whether the step used up a fault.
func (a Action) fault() bool {
	switch a.Kind {
	case actCrash, actReplace:
		return true
	case actTakeOver, actShrink, actDropLearner:
		return a.N > 0
	}
	return false
}

func (id ID) String() string {
	if id == 0 {
		return "none"
	}
	return fmt.Sprintf("%c%d", 'A'+rune(podOf(id)), int(id-1)/maxPods+1)
}

func (c Config) String() string {
	text := fmt.Sprintf("primary %s, inSync [%s", c.Primary, c.Primary)
	for _, id := range c.Others {
		if id != 0 {
			text += " " + id.String()
		}
	}
	return text + "]"
}

func (p Purpose) String() string {
	return [...]string{"nothing", "a take-over", "a shrink", "an admission", "a hand-over", "a retirement"}[p]
}

func (s pods) String() string {
	text := ""
	for pod := range maxPods {
		if s.has(pod) {
			text += string('A' + rune(pod))
		}
	}
	return text
}

func (l Log) String() string {
	text := "["
	for i := uint8(0); i < l.Len(); i++ {
		if i > 0 {
			text += " "
		}
		text += fmt.Sprint(uint8(l>>(2*i)) & 3)
	}
	return text + "]"
}

// text describes the step; cut is how many epochs were cut off before.
func (a Action) text(cut int) string {
	e := int(a.E) + cut
	if text := a.dataText(e); text != "" {
		return text
	}
	if text := a.memberText(e); text != "" {
		return text
	}
	switch a.Kind {
	case actLand:
		return fmt.Sprintf("the arbiter accepts epoch %d: %s", e, a.Next)
	case actLearn:
		if a.Q != 0 {
			return fmt.Sprintf("%s learns of epoch %d: %s; it was dropped, so it exits; its pod starts %s, empty", a.P, e, a.Next, a.Q)
		}
		return fmt.Sprintf("%s learns of epoch %d: %s", a.P, e, a.Next)
	case actRefused:
		return fmt.Sprintf("the arbiter rejects %s's only attempt, and %s forgets its proposal", a.P, a.P)
	case actForget:
		return fmt.Sprintf("%s gets no answer to its proposal and continues in epoch %d as if it had made none", a.P, e)
	case actLost:
		return fmt.Sprintf("%s's proposal is lost on the network, and not repeated", a.P)
	case actMove:
		return fmt.Sprintf("the record names pods %s", pods(a.N))
	case actReplace:
		return fmt.Sprintf("the pod of %s is replaced: %s starts, %s keeps running", a.P, a.Q, a.P)
	}
	if a.Q == 0 {
		return fmt.Sprintf("%s crashes", a.P)
	}
	return fmt.Sprintf("%s crashes; %s starts empty", a.P, a.Q)
}

// dataText describes the steps of data.go.
func (a Action) dataText(e int) string {
	switch a.Kind {
	case actSubmit:
		return fmt.Sprintf("%s takes order %d", a.P, a.N)
	case actStore:
		return fmt.Sprintf("%s stores entry %d of epoch %d's primary and acknowledges it", a.P, a.N, e)
	case actReceiveAck:
		return fmt.Sprintf("%s receives %s's acknowledgement of %d entries", a.P, a.Q, a.N)
	case actDiverge:
		return fmt.Sprintf("%s finds entries that its primary lacks, and exits; its pod starts %s, empty", a.P, a.Q)
	case actCommit:
		return fmt.Sprintf("%s commits %d entries in epoch %d and acknowledges them", a.P, a.N, e)
	case actRead:
		return fmt.Sprintf("a confirmed read arrives at %s in epoch %d, which has committed %d entries", a.P, e, a.N)
	case actEcho:
		return fmt.Sprintf("%s echoes to %s in epoch %d", a.Q, a.P, e)
	case actAnswer:
		return fmt.Sprintf("%s answers the read in epoch %d", a.P, e)
	}
	return ""
}

// memberText describes the steps of member.go.
func (a Action) memberText(e int) string {
	why := "which is dead"
	if a.N > 0 {
		why = "which is healthy (a fault)"
	}
	switch a.Kind {
	case actJoin:
		return fmt.Sprintf("%s, which stores %d entries, joins %s as a learner", a.P, a.N, a.Q)
	case actDiscard:
		return fmt.Sprintf("%s stores %d entries that differ from %s's: it exits; its pod starts %s, empty", a.P, a.N, a.Q, a.Next.Primary)
	case actEnterAckSet:
		return fmt.Sprintf("%s takes the learner %s into its ack set", a.P, a.Q)
	case actDropLearner:
		return fmt.Sprintf("%s drops the learner %s, %s", a.P, a.Q, why)
	case actPropose:
		return fmt.Sprintf("%s proposes %s, epoch %d: %s", a.P, Purpose(a.N), e+1, a.Next)
	case actTakeOver:
		return fmt.Sprintf("%s suspects its primary, %s: it leaves epoch %d and proposes itself for epoch %d", a.P, why, e, e+1)
	case actShrink:
		return fmt.Sprintf("%s suspects a member, %s: it stops acknowledging and proposes epoch %d: %s", a.P, why, e+1, a.Next)
	case actClose:
		return fmt.Sprintf("%s learns that epoch %d was accepted and takes no more orders", a.P, e)
	}
	return ""
}
