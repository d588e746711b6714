package arbiter

import (
	"fmt"
	"slices"
	"strings"
)

// CheckTransition reports whether next may follow old. It is the same set of rules,
// with the same messages, as the CEL rules on GridPartitionStatus; a test holds
// the two together. The zero Record (epoch 0) stands for an unclaimed partition.
// What a person allowed is read from old.Spec: next.Spec is the proposer's word.
func CheckTransition(old, next Record) error {
	for _, rule := range []func(old, next Record) string{
		ruleEpochFollows, ruleEpochTaken, ruleLineageFollows, ruleLossAccepted, rulePrimaryWasInSync,
		rulePrimaryPresent, ruleLineagePresent, ruleChangeIDPresent, ruleInSyncHasPrimary,
		ruleInSyncNeedsPrimary, ruleFirstClaimAlone, ruleInSyncSize, ruleMembers,
		ruleTermFalls, ruleTermMoves, ruleFirstRole, ruleFirstTerm, ruleStandbyBegins, ruleStandbyEnds,
	} {
		if msg := rule(old, next); msg != "" {
			return Refused("%s", msg)
		}
	}
	return nil
}

func ruleEpochFollows(old, next Record) string {
	switch from := old.Spec.Restore; {
	case from != nil && old.Epoch == 0 && next.Epoch != 0 && next.Epoch != from.Epoch+1:
		return fmt.Sprintf("epoch %d at the first claim: the partition is restored from an archive of epoch %d; propose epoch %d",
			next.Epoch, from.Epoch, from.Epoch+1)
	case from != nil && old.Epoch == 0:
		return ""
	case next.Epoch == old.Epoch || next.Epoch == old.Epoch+1 || promotes(old, next) && next.Epoch > old.Epoch:
		return ""
	case old.Epoch == 0:
		return fmt.Sprintf("epoch %d at the first claim: the partition has no configuration yet; propose epoch 1", next.Epoch)
	}
	return fmt.Sprintf("epoch %d does not follow %d: every change of the configuration raises it by exactly 1; "+
		"read the partition again from the API server, not from a cache, and propose %d", next.Epoch, old.Epoch, old.Epoch+1)
}

func ruleEpochTaken(old, next Record) string {
	if next.Epoch != old.Epoch || SameConfiguration(old, next) {
		return ""
	}
	return fmt.Sprintf("epoch %d is already taken by change %s: primary, inSync, lineage and changeID may change only "+
		"together with the epoch; read the partition again and propose epoch %d", next.Epoch, orNone(old.ChangeID), old.Epoch+1)
}

func ruleLineageFollows(old, next Record) string {
	switch from := old.Spec.Restore; {
	case from != nil && old.Epoch == 0 && next.Epoch != 0 && next.Lineage != from.Lineage+1:
		return fmt.Sprintf("lineage %d at the first claim: the partition is restored from an archive of lineage %d, and what that grid "+
			"did behind it is given up; set lineage to %d", next.Lineage, from.Lineage, from.Lineage+1)
	case from != nil && old.Epoch == 0 && next.Epoch != 0:
		return ""
	case next.Lineage == old.Lineage || next.Lineage == old.Lineage+1 || promotes(old, next) && next.Lineage > old.Lineage:
		return ""
	case old.Epoch == 0:
		return fmt.Sprintf("lineage %d at the first claim: nothing can have been lost yet; set lineage to 1", next.Lineage)
	}
	return fmt.Sprintf("lineage %d does not follow %d: it never falls, and rises by 1 only when a loss of data was "+
		"accepted; keep it as it was", next.Lineage, old.Lineage)
}

func ruleLossAccepted(old, next Record) string {
	if old.Epoch == 0 || next.Lineage <= old.Lineage || promotes(old, next) || old.Spec.AcceptDataLossEpoch == old.Epoch || old.Spec.ReassertChangeID != "" {
		return ""
	}
	return fmt.Sprintf("lineage %d would give up what lineage %d holds without an accepted loss: spec.acceptDataLossEpoch "+
		"is %d, not the epoch %d; keep the lineage, or accept the loss with the annotation "+
		"ordergrid.dev/accept-data-loss=%d", next.Lineage, old.Lineage, old.Spec.AcceptDataLossEpoch, old.Epoch, old.Epoch)
}

func rulePrimaryWasInSync(old, next Record) string {
	if next.Epoch == old.Epoch || old.Epoch == 0 || next.Primary.ID == "" || next.Lineage == old.Lineage+1 && !promotes(old, next) ||
		slices.ContainsFunc(old.InSync, func(m Member) bool { return m.ID == next.Primary.ID }) {
		return ""
	}
	return fmt.Sprintf("primary %s was not in inSync %s of epoch %d: only an in-sync member holds every acknowledged "+
		"order; let it join through the primary first, or accept the loss of data, which raises lineage",
		next.Primary.ID, ids(old.InSync), old.Epoch)
}

func rulePrimaryPresent(_, next Record) string {
	switch {
	case next.Epoch == 0 && next.Primary.ID != "":
		return fmt.Sprintf("primary %s at epoch 0, which means never claimed; propose epoch 1", next.Primary.ID)
	case next.Epoch != 0 && next.Primary.ID == "":
		return fmt.Sprintf("primary is missing at epoch %d: every epoch has exactly one primary; name it with id, podName, "+
			"bootID and address", next.Epoch)
	}
	return ""
}

func ruleLineagePresent(_, next Record) string {
	if next.Epoch == 0 || next.Lineage >= 1 {
		return ""
	}
	return fmt.Sprintf("lineage %d at epoch %d: the first claim starts lineage 1; set lineage to 1", next.Lineage, next.Epoch)
}

func ruleChangeIDPresent(_, next Record) string {
	if next.Epoch == 0 || next.ChangeID != "" {
		return ""
	}
	return fmt.Sprintf("changeID is missing at epoch %d: a proposer recognises its own change by it after a timeout; set "+
		"it to a new random string with every proposal", next.Epoch)
}

func ruleInSyncHasPrimary(_, next Record) string {
	if next.Primary.ID == "" || slices.ContainsFunc(next.InSync, func(m Member) bool {
		return m.ID == next.Primary.ID && m.Address == next.Primary.Address
	}) {
		return ""
	}
	return fmt.Sprintf("inSync %s does not contain the primary %s@%s: the primary is always in sync; add it with the "+
		"same id and address", idsAt(next.InSync), next.Primary.ID, next.Primary.Address)
}

func ruleInSyncNeedsPrimary(_, next Record) string {
	if next.Primary.ID != "" || len(next.InSync) == 0 {
		return ""
	}
	return fmt.Sprintf("inSync has %d members but there is no primary: name the primary, or leave inSync empty", len(next.InSync))
}

func ruleFirstClaimAlone(old, next Record) string {
	if old.Epoch > 0 || next.Epoch == 0 || len(next.InSync) <= 1 {
		return ""
	}
	return fmt.Sprintf("inSync has %d members at the first claim, before any member can have joined; claim with the primary alone", len(next.InSync))
}

// The next two are structural rules of the CRD (maxItems, list map keys, the
// member's id), not CEL rules on the status.

func ruleInSyncSize(_, next Record) string {
	if len(next.InSync) > MaxMembers {
		return fmt.Sprintf("inSync has %d members: at most %d", len(next.InSync), MaxMembers)
	}
	for i, m := range next.InSync {
		if slices.ContainsFunc(next.InSync[:i], func(o Member) bool { return o.ID == m.ID }) {
			return fmt.Sprintf("inSync names %s twice: a member is listed once", m.ID)
		}
	}
	return ""
}

func ruleMembers(_, next Record) string {
	for _, m := range append([]Member{next.Primary}, next.InSync...) {
		if m != (Member{}) && m.ID != m.PodName+"/"+m.BootID {
			return fmt.Sprintf("id %s is not podName/bootID: set it to %s/%s", m.ID, m.PodName, m.BootID)
		}
	}
	return ""
}

// SameConfiguration reports whether both records are the same proposal: only
// name, version, time and spec may differ.
func SameConfiguration(a, b Record) bool {
	return a.Epoch == b.Epoch && a.Lineage == b.Lineage && a.ChangeID == b.ChangeID && a.Primary == b.Primary &&
		a.Standby == b.Standby && a.Term == b.Term && slices.Equal(a.InSync, b.InSync)
}

func ids(ms []Member) string {
	return list(ms, func(m Member) string { return m.ID })
}

func idsAt(ms []Member) string {
	return list(ms, func(m Member) string { return m.ID + "@" + m.Address })
}

// list prints as CEL does: ["a", "b"].
func list(ms []Member, text func(Member) string) string {
	var s []string
	for _, m := range ms {
		s = append(s, fmt.Sprintf("%q", text(m)))
	}
	return "[" + strings.Join(s, ", ") + "]"
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
