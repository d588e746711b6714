package ordergrid

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

const (
	journalVolume = "journal" // and its claim template
	journalDir    = "/var/lib/ordergrid/journal"

	// A node reads its journal before it answers: a GiB takes so long on a slow volume, of 50 MiB/s.
	journalSecondsPerGiB = 20
)

// Reasons of the condition JournalsHealthy.
const (
	reasonJournalsDurable = "Durable"
	reasonJournalFailing  = "Failing"
	reasonJournalFull     = "JournalFull"
	reasonJournalAbsent   = "NoJournal"
)

// journalArgs configure the journal of a grid node.
func journalArgs(grid *api.OrderGrid) []string {
	j := grid.Spec.Journal
	if j == nil {
		return nil
	}
	return []string{"--journal", journalDir, "--journal-max-bytes", fmt.Sprint(j.MaxBytes())}
}

// journalMounts of the grid node's container; the volume comes from the StatefulSet's claim templates.
func journalMounts(grid *api.OrderGrid) []corev1.VolumeMount {
	if grid.Spec.Journal == nil {
		return nil
	}
	return []corev1.VolumeMount{{Name: journalVolume, MountPath: journalDir}}
}

// claimJournal adds the claim of the journal to a shard's StatefulSet. It stays when the grid is deleted, unless the
// claims of its sinks go: the policy is of all claims.
func claimJournal(grid *api.OrderGrid, shard int32, set *appsv1.StatefulSet) {
	j := grid.Spec.Journal
	if j == nil {
		return
	}
	set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, claim(grid, shard, journalVolume, j.StorageClassName, j.Size))
	if set.Spec.PersistentVolumeClaimRetentionPolicy == nil {
		set.Spec.PersistentVolumeClaimRetentionPolicy = retention(api.ClaimRetain)
	}
}

// journalSeconds is how long the loop of a node may be busy with reading its journal.
func journalSeconds(grid *api.OrderGrid) int64 {
	if grid.Spec.Journal == nil {
		return 0
	}
	const gib = 1 << 30
	return journalSecondsPerGiB * ((grid.Spec.Journal.Size.Value() + gib - 1) / gib)
}

// journalState is what a node reports of its journals, as coarse as it is judged.
type journalState struct {
	kept, full bool
	failing    string
}

// journalsOf are the journals of a grid, by pod.
func journalsOf(answers []*nodestatus.Memory) map[string]journalState {
	all := map[string]journalState{}
	for _, m := range answers {
		s := journalState{}
		if m.Journal != nil {
			s = journalState{kept: true, full: m.Journal.Full, failing: messages.Cut(m.Journal.Error, 512)}
		}
		all[m.Pod] = s
	}
	return all
}

// journalTrouble reports whether a journal is in a state that will change.
func (a *room) journalTrouble() bool {
	for _, j := range a.journals {
		if j.full || j.failing != "" {
			return true
		}
	}
	return false
}

// judgeJournals: what is acknowledged is on the disk of every copy, and there is room for more.
func judgeJournals(o *observation) judgement {
	switch before := meta.FindStatusCondition(o.grid.Status.Conditions, api.ConditionJournalsHealthy); {
	case o.grid.Spec.Journal == nil:
		return judgement{}
	case !o.roomAsked && before != nil:
		return judgement{before.Status, before.Reason, before.Message} // this operator has just started
	case !o.roomAsked || !o.room.known:
		return judgement{metav1.ConditionUnknown, reasonNodesSilent, "no grid node has answered the operator about its journal yet"}
	}
	var failing, full, absent []string
	for pod, j := range o.room.journals {
		switch {
		case !j.kept:
			absent = append(absent, pod)
		case j.failing != "":
			failing = append(failing, pod+": "+j.failing)
		case j.full:
			full = append(full, pod)
		}
	}
	for _, list := range [][]string{failing, full, absent} {
		slices.Sort(list)
	}
	no := func(reason, format string, args ...any) judgement {
		return judgement{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
	}
	switch {
	case len(failing) > 0:
		return no(reasonJournalFailing, "the journal of %d pods cannot be written%s. Nothing that it lacks is acknowledged there. See docs/runbooks/JournalFailing.md", len(failing), some(failing))
	case len(full) > 0:
		return no(reasonJournalFull, "orders are refused, since the journal of %d pods has only its reserve left%s. No acknowledged order is lost. %s", len(full), some(full), journalAdvice(o.grid))
	case len(absent) > 0:
		return no(reasonJournalAbsent, "%d pods run without a journal, so their image is older than spec.journal%s. Remove spec.image, or give a newer one", len(absent), some(absent))
	case !o.room.all || len(o.room.journals) < o.wantPods():
		return judgement{metav1.ConditionUnknown, reasonNodesSilent, fmt.Sprintf("only these pods answer the operator%s", some(o.journaling()))}
	}
	return judgement{metav1.ConditionTrue, reasonJournalsDurable, fmt.Sprintf("%s only what is on the disk, which has room for more", all(len(o.room.journals), "pod acknowledges", "pods acknowledge"))}
}

// journaling are the pods that reported a journal, by name.
func (o *observation) journaling() (pods []string) {
	for pod, j := range o.room.journals {
		if j.kept {
			pods = append(pods, pod)
		}
	}
	slices.Sort(pods)
	return pods
}

// journalAdvice is the remedy for a full journal. It has what is in memory, so the same makes room.
func journalAdvice(grid *api.OrderGrid) string {
	if grid.Spec.Retention.Policy == api.RetentionFreeDownstream {
		return "Only what every sink holds is freed: check which one lags (status.sinks), or create a second OrderGrid with a larger spec.journal.size and move the traffic"
	}
	return "spec.retention.policy KeepAll frees nothing: set FreeDownstream with a sink that outlives the pods, or create a second OrderGrid with a larger spec.journal.size and move the traffic"
}

// journalEvents tell that a journal is in trouble, and that none is any more.
func journalEvents(c *metav1.Condition, was metav1.ConditionStatus) []event {
	e := event{kind: corev1.EventTypeWarning, reason: c.Reason, action: "Observe", note: c.Message}
	switch {
	case c.Status == metav1.ConditionTrue && was == metav1.ConditionFalse:
		e.kind = corev1.EventTypeNormal
	case c.Status != metav1.ConditionFalse:
		return nil
	}
	return []event{e}
}
