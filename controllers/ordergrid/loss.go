package ordergrid

import (
	"context"
	"fmt"
	"strings"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// fate is the state of a process.
type fate int

const (
	fateNotAsked fate = iota
	fateAlive         // it answers
	fateUnknown       // it does not answer, and may be alive
	fateGone          // it cannot come back
)

// loss is the state of the in-sync members of a partition, the only processes that hold all its orders.
type loss struct {
	verdict fate     // alive if one of them is; gone if all are
	members []string // one clause per member
}

func (l loss) String() string { return strings.Join(l.members, "; ") }

// judgeLoss determines the state of every in-sync member. Silence is no proof: a process is gone only when its pod is
// gone, or when another process answers in its pod; where it has a journal, only the latter is one.
func (r *Reconciler) judgeLoss(ctx context.Context, found *finding, answers map[string]*answer) (loss, error) {
	l, p := loss{verdict: fateGone}, found.record
	for _, m := range p.Status.InSync {
		a := answers[m.PodName]
		if a == nil {
			a = &answer{} // no pod of this grid; the API server is asked below
		}
		f, text := memberFate(p.Name, m, a)
		if f == fateGone && a.node == nil { // the cache may be behind
			pod, err := r.livePod(ctx, p.Namespace, m.PodName)
			if err != nil {
				return loss{}, fmt.Errorf("read Pod %s: %w", m.PodName, err)
			}
			f, text = memberFate(p.Name, m, &answer{pod: pod})
		}
		if f == fateGone && a.node == nil && found.journal { // the next process in its pod is its heir
			f, text = fateUnknown, fmt.Sprintf("%s, and what it held is in PersistentVolumeClaim %s-%s, with which it comes back; if that is lost, delete the claim and the pod", text, journalVolume, m.PodName)
		}
		l.members = append(l.members, m.ID+" "+text)
		l.verdict = min(l.verdict, f)
	}
	return l, nil
}

func memberFate(partition string, m api.Member, a *answer) (fate, string) {
	switch {
	case a.pod == nil:
		return fateGone, "is gone: its pod does not exist"
	case a.node != nil:
		return processFate(m, a.node.Find(partition))
	case a.pod.Spec.NodeName == "" && a.pod.Status.PodIP == "":
		return fateGone, "is gone: its pod was created anew and waits for a Kubernetes node"
	case a.pod.Status.PodIP == "":
		return fateUnknown, "is not known to be gone: its pod has no address yet"
	}
	return fateUnknown, fmt.Sprintf("does not answer at %s", statusAddress(a.pod))
}

func processFate(m api.Member, p *nodestatus.Partition) (fate, string) {
	switch {
	case p == nil:
		return fateUnknown, "is not known to be gone: its pod answers, but does not know the partition"
	case p.Member != m.ID:
		return fateGone, fmt.Sprintf("is gone: its pod runs %s now, which is %s and holds entries up to %d", p.Member, p.Role, p.LastSeq)
	}
	return fateAlive, fmt.Sprintf("is alive: it is %s at epoch %d", p.Role, p.Epoch)
}
