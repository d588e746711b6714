package ordergrid

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/apply"
	"github.com/ordergrid/ordergrid/controllers/messages"
)

// requested holds the checked requests made by annotations of a GridPartition. The zero value requests nothing.
//
// accept-data-loss and reassert-configuration are commands: an annotation is carried out, or refused, and removed in
// either case, so that a forgotten one has no effect later. preferred-pod is a setting and stays.
type requested struct {
	preferredPod        string
	acceptDataLossEpoch int64
	reassertChangeID    string
}

// requested reads and checks the annotations of a partition. f is nil while the partition has no record yet.
func (r *run) requested(ctx context.Context, f *finding, copies *shardCopies) (w requested, err error) {
	if f == nil {
		return w, nil
	}
	if w.preferredPod, err = r.preferredPod(ctx, f, copies); err != nil {
		return w, err
	}
	if w.acceptDataLossEpoch, err = r.acceptance(ctx, f); err != nil {
		return w, err
	}
	w.reassertChangeID, err = r.reassertion(ctx, f)
	return w, err
}

// preferredPod is the requested primary, empty for the default. It has to be one of the shard that the partition is to
// be on: a request does not move along with a partition.
func (r *run) preferredPod(ctx context.Context, f *finding, copies *shardCopies) (string, error) {
	pod, there := f.record.Annotations[api.AnnotationPreferredPod]
	if !there {
		return "", nil
	}
	allowed := mayBePrimary(r.grid, copies)
	if slices.Contains(allowed, pod) {
		return pod, nil
	}
	return "", r.refuse(ctx, f, api.AnnotationPreferredPod, eventPreferredPodRefused,
		fmt.Sprintf("%q is not a pod that keeps a copy of the partition; allowed are %v", pod, allowed))
}

// acceptance is the epoch whose loss is accepted, 0 for none. It is set only while every in-sync member is known to be
// gone, and withdrawn when one of them answers.
func (r *run) acceptance(ctx context.Context, f *finding) (int64, error) {
	p := f.record
	value, there := p.Annotations[api.AnnotationAcceptDataLoss]
	if !there {
		return 0, nil
	}
	given := p.Spec.AcceptDataLossEpoch
	refuse := func(format string, args ...any) (int64, error) {
		return 0, r.refuse(ctx, f, api.AnnotationAcceptDataLoss, eventAcceptRefused, fmt.Sprintf(format, args...))
	}
	epoch, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil || epoch < 1:
		return refuse("%q is not an epoch; give the present one, %d, if what its in-sync members hold is to be given up", value, p.Status.Epoch)
	case epoch == given && p.Status.Epoch > epoch:
		note := fmt.Sprintf("epoch %d is over: the partition is at epoch %d, lineage %d", epoch, p.Status.Epoch, p.Status.Lineage)
		return 0, r.done(ctx, f, api.AnnotationAcceptDataLoss, eventAcceptanceOver, note)
	case epoch != p.Status.Epoch:
		return refuse("epoch %d is not the present one, %d: check the in-sync members again", epoch, p.Status.Epoch)
	case f.lead != nil && len(f.lead.holders) > 0:
		return refuse("the record has gone back, and epoch %d is served: %s; see condition %s", f.lead.epoch, f.lead.by(), api.ConditionConfigurationRegressed)
	case f.loss.verdict == fateAlive:
		return refuse("not every in-sync member is gone: %s", f.loss)
	case f.loss.verdict == fateGone:
		return epoch, nil
	}
	f.pending[api.AnnotationAcceptDataLoss] = fmt.Sprintf("accepting the loss of epoch %d waits until it is known that every in-sync member is gone: %s", epoch, f.loss)
	return given, nil
}

// reassertion is the change id of the configuration that is declared authoritative, empty for none.
func (r *run) reassertion(ctx context.Context, f *finding) (string, error) {
	p := f.record
	value, there := p.Annotations[api.AnnotationReassert]
	if !there {
		return "", nil
	}
	given := p.Spec.ReassertChangeID
	switch {
	case f.silent || !f.asked: // it may have a later one, and hold orders that no other pod has
		f.pending[api.AnnotationReassert] = fmt.Sprintf("asserting change %s waits: a pod of the grid does not answer; delete one that is gone for good", value)
		return given, nil
	case f.lead != nil && f.lead.shows(value):
		return value, nil
	case f.lead == nil && value == given:
		return "", r.done(ctx, f, api.AnnotationReassert, eventReasserted, fmt.Sprintf("the record is at epoch %d, ahead of change %s", p.Status.Epoch, value))
	case f.lead == nil:
		return "", r.refuse(ctx, f, api.AnnotationReassert, eventReassertRefused, "the record is not behind any configuration that is known")
	case value == p.Status.ChangeID && len(f.lead.holders) == 0:
		f.memory.highest, f.lead = configurationOf(p), nil
		return "", r.done(ctx, f, api.AnnotationReassert, eventRecordKept, fmt.Sprintf("epoch %d, change %s, is kept as it stands", p.Status.Epoch, value))
	}
	why := fmt.Sprintf("no grid node has change %q, nor any other that is ahead of the record", value)
	if len(f.lead.holders) > 0 {
		h := f.lead.holders[0]
		why = fmt.Sprintf("change %q is not the latest that a grid node has, which is %s at epoch %d: %s", value, h.changeID, h.epoch, f.lead.by())
	}
	return "", r.refuse(ctx, f, api.AnnotationReassert, eventReassertRefused, why)
}

// recordGranted reports a request that has just been passed to the grid nodes.
func (r *run) recordGranted(ctx context.Context, f *finding, w requested) {
	if f == nil {
		return
	}
	if w.acceptDataLossEpoch != 0 && f.record.Spec.AcceptDataLossEpoch == 0 {
		delete(f.memory.refused, api.AnnotationAcceptDataLoss)
		r.answered(f.record, corev1.EventTypeWarning, eventAcceptingLoss, fmt.Sprintf("the loss of what only the in-sync members of epoch %d held is accepted: %s", w.acceptDataLossEpoch, f.loss), r.asker(ctx, f.record, api.AnnotationAcceptDataLoss))
	}
	if w.reassertChangeID != "" && f.record.Spec.ReassertChangeID == "" {
		delete(f.memory.refused, api.AnnotationReassert)
		r.answered(f.record, corev1.EventTypeWarning, eventReasserting, fmt.Sprintf("the configuration of epoch %d, change %s, is written again: %s", f.lead.epoch, w.reassertChangeID, f.lead.by()), r.asker(ctx, f.record, api.AnnotationReassert))
	}
}

// refuse removes an annotation that requests something forbidden, with the reason.
func (r *run) refuse(ctx context.Context, f *finding, annotation, reason, why string) error {
	by := r.asker(ctx, f.record, annotation)
	if err := r.removeAnnotation(ctx, f, annotation); err != nil {
		return err
	}
	f.memory.refused[annotation] = refusal{configurationOf(f.record), why}
	r.answered(f.record, corev1.EventTypeWarning, reason, "annotation "+annotation+" is refused and removed: "+why, by)
	return nil
}

// done removes an annotation that has had its effect.
func (r *run) done(ctx context.Context, f *finding, annotation, reason, note string) error {
	by := r.asker(ctx, f.record, annotation)
	if err := r.removeAnnotation(ctx, f, annotation); err != nil {
		return err
	}
	delete(f.memory.refused, annotation)
	r.answered(f.record, corev1.EventTypeNormal, reason, note, by)
	return nil
}

// removeAnnotation fails if the object has changed: another request may have just been made.
func (r *run) removeAnnotation(ctx context.Context, f *finding, annotation string) error {
	before := f.record.DeepCopy()
	delete(f.record.Annotations, annotation)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	after := f.record.DeepCopy()
	err := r.Client.Patch(ctx, after, patch, client.FieldOwner(apply.FieldOwner))
	switch {
	case err == nil:
		f.record.ResourceVersion = after.ResourceVersion // this pass goes on to write it
		countWrite("GridPartition", apply.Updated)
		wrote(ctx, "updated", "GridPartition", f.record.Name, "removed", annotation)
		return nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return &movedError{err}
	}
	return fmt.Errorf("remove annotation %s of GridPartition %s: %w", annotation, f.record.Name, err)
}

func (r *run) recordEvent(p *api.GridPartition, kind, reason, note string) {
	about := reference(p.Namespace, p.Name)
	about.UID = p.UID
	r.Recorder.Eventf(about, r.grid, kind, reason, "Reconcile", "%s", messages.Cut(note, messages.MaxNote))
}

// movedError: what was read has changed; the next pass reads it anew.
type movedError struct{ error }

func (e *movedError) Unwrap() error { return e.error }
