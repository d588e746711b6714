package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
)

// FromObject converts an object to a record.
func FromObject(gp *v1alpha1.GridPartition) arbiter.Record {
	r := arbiter.Record{
		Name: gp.Name, Version: gp.ResourceVersion,
		Epoch: nonNegative(gp.Status.Epoch), Lineage: nonNegative(gp.Status.Lineage), ChangeID: gp.Status.ChangeID,
		Spec: arbiter.Spec{Grid: gp.Spec.GridRef.Name, Partition: int(gp.Spec.Partition), Shard: int(gp.Spec.Shard),
			Replicas: int(gp.Spec.Replicas), MinInSync: int(gp.Spec.MinInSync), MaxInSync: int(gp.Spec.MaxInSync), Pods: gp.Spec.Pods, PreferredPod: gp.Spec.PreferredPod, LearnerRate: gp.Spec.LearnerRate,
			AcceptDataLossEpoch: nonNegative(gp.Spec.AcceptDataLossEpoch), ReassertChangeID: gp.Spec.ReassertChangeID},
	}
	if p := gp.Spec.Restore; p != nil {
		r.Spec.Restore = &arbiter.Restore{Seq: nonNegative(p.Seq), Hash: p.Hash, Epoch: nonNegative(p.Epoch), Lineage: nonNegative(p.Lineage)}
	}
	if stamp := gp.Annotations[v1alpha1.AnnotationRecord]; stamp != "" && stamp != string(gp.UID) {
		r.Copied = true
	}
	for _, e := range gp.Spec.ExternalAddresses {
		r.Spec.External = append(r.Spec.External, arbiter.ExternalAddress{Pod: e.PodName, Address: e.Address})
	}
	fromSite(gp, &r)
	if gp.Status.Primary != nil {
		r.Primary = fromMember(*gp.Status.Primary)
	}
	for _, m := range gp.Status.InSync {
		r.InSync = append(r.InSync, fromMember(m))
	}
	if gp.Status.ObservedTime != nil {
		r.Observed = gp.Status.ObservedTime.Time
	}
	return r
}

// fromSite converts what an object has of a pair of sites.
func fromSite(gp *v1alpha1.GridPartition, r *arbiter.Record) {
	if s := gp.Status.Site; s != nil {
		r.Standby, r.Term = s.Role == v1alpha1.SiteStandby, nonNegative(s.Term)
	}
	s := gp.Spec.Site
	if s == nil {
		return
	}
	r.Spec.Standby, r.Spec.Source = s.Role == v1alpha1.SiteStandby, s.Source
	if p := s.Promote; p != nil {
		r.Spec.Promote = arbiter.Promote{Term: nonNegative(p.Term), Seq: nonNegative(p.Seq), Hash: p.Hash, Forced: p.Mode == v1alpha1.PromoteForced}
	}
	if d := s.Demote; d != nil {
		r.Spec.Demote = arbiter.Demote{Wanted: true, Term: nonNegative(d.Term)}
	}
}

// toObject makes the body of a status PUT. The API server takes the status and
// the resource version from it and keeps everything else.
func toObject(r arbiter.Record, namespace string) *v1alpha1.GridPartition {
	gp := &v1alpha1.GridPartition{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "GridPartition"},
		ObjectMeta: metav1.ObjectMeta{Name: r.Name, Namespace: namespace, ResourceVersion: r.Version},
		Status: v1alpha1.GridPartitionStatus{Epoch: int64(r.Epoch), Lineage: int64(r.Lineage), ChangeID: r.ChangeID,
			InSyncCount: int32(len(r.InSync))},
	}
	if r.Standby || r.Term > 0 {
		gp.Status.Site = &v1alpha1.PartitionSiteStatus{Role: v1alpha1.SiteActive, Term: int64(r.Term)}
		if r.Standby {
			gp.Status.Site.Role = v1alpha1.SiteStandby
		}
	}
	if r.Primary.ID != "" {
		m := toMember(r.Primary)
		gp.Status.Primary = &m
	}
	for _, m := range r.InSync {
		gp.Status.InSync = append(gp.Status.InSync, toMember(m))
	}
	gp.Status.InSyncCount = int32(len(r.InSync))
	if !r.Observed.IsZero() {
		t := metav1.NewTime(r.Observed)
		gp.Status.ObservedTime = &t
	}
	return gp
}

func fromMember(m v1alpha1.Member) arbiter.Member {
	return arbiter.Member{ID: m.ID, PodName: m.PodName, BootID: m.BootID, Address: m.Address}
}

func toMember(m arbiter.Member) v1alpha1.Member {
	return v1alpha1.Member{ID: m.ID, PodName: m.PodName, BootID: m.BootID, Address: m.Address}
}

// nonNegative: the CRD refuses negative numbers; a broken server must not make
// a huge epoch of one.
func nonNegative(v int64) uint64 { return uint64(max(v, 0)) }
