package ordergrid

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Reasons of Standby; reasonStandby also of Available and AcceptingOrders.
const (
	reasonStandby          = "Standby"
	reasonStandbyBeginning = "Beginning"
	reasonPromoting        = "Promoting"
	reasonDemoting         = "Demoting"
	reasonMixed            = "Mixed"
	reasonActive           = "Active"
)

// isStandby reports whether a partition gets its entries from another site: by its record, once it was claimed.
func isStandby(p *api.GridPartition) bool {
	return p.Status.Site != nil && p.Status.Site.Role == api.SiteStandby
}

// standbys are the partitions that get their entries from another site.
func (o *observation) standbys() (names []string) {
	for i := range o.partitions {
		if isStandby(&o.partitions[i]) {
			names = append(names, o.partitions[i].Name)
		}
	}
	return names
}

// inPair reports whether the grid is in a pair of sites, or was.
func (o *observation) inPair() bool {
	if o.grid.Spec.Site != nil {
		return true
	}
	for i := range o.partitions {
		if p := &o.partitions[i]; p.Status.Site != nil {
			return true
		}
	}
	return false
}

// otherSite names the other site in messages.
func (o *observation) otherSite() string {
	if s := o.grid.Spec.Site; s != nil && s.Source != "" {
		return s.Source
	}
	return "the other site"
}

// siteStatus is nil in a grid that was never in a pair of sites.
func (o *observation) siteStatus() *api.GridSiteStatus {
	if !o.inPair() {
		return nil
	}
	s := &api.GridSiteStatus{Role: api.GridSiteActive, Standbys: int32(len(o.standbys()))}
	claimed := int32(0)
	for i := range o.partitions {
		p := &o.partitions[i]
		if p.Status.Epoch > 0 {
			claimed++
		}
		if p.Status.Site != nil {
			s.Term = max(s.Term, p.Status.Site.Term)
		}
	}
	switch {
	case claimed == 0: // what the first claims make of it
		s.Role = api.GridSiteRole(o.grid.Spec.Site.Role)
	case s.Standbys == claimed:
		s.Role = api.GridSiteStandby
	case s.Standbys > 0:
		s.Role = api.GridSiteMixed
	}
	return s
}

// siteChanges are decisions of an administrator that records have not followed yet.
func (o *observation) siteChanges() (promoting, demoting []string) {
	for i := range o.partitions {
		p := &o.partitions[i]
		if p.Spec.Site == nil || p.Status.Epoch == 0 {
			continue
		}
		term := int64(0)
		if p.Status.Site != nil {
			term = p.Status.Site.Term
		}
		to, from := p.Spec.Site.Promote, p.Spec.Site.Demote
		switch {
		case isStandby(p) && to != nil && to.Term > term && to.Mode == api.PromoteClean && to.Seq > 0:
			promoting = append(promoting, fmt.Sprintf("%s waits for entry %d of the other site", p.Name, to.Seq))
		case isStandby(p) && to != nil && to.Term > term:
			promoting = append(promoting, p.Name)
		case !isStandby(p) && from != nil && from.Term == term:
			demoting = append(demoting, p.Name)
		}
	}
	return promoting, demoting
}

// judgeStandby: the grid holds the log of another site, and takes no orders. How far behind it is only the link knows,
// which sees both logs.
func judgeStandby(o *observation) judgement {
	if !o.inPair() {
		return judgement{}
	}
	waiting, n := o.standbys(), o.wantPartitions()
	promoting, demoting := o.siteChanges()
	s := o.siteStatus()
	claimed := 0
	for i := range o.partitions {
		if o.partitions[i].Status.Epoch > 0 {
			claimed++
		}
	}
	var j judgement
	switch {
	case len(promoting) > 0:
		j = judgement{metav1.ConditionTrue, reasonPromoting, fmt.Sprintf("%d of %d partitions are being promoted%s", len(promoting), n, some(promoting))}
	case len(demoting) > 0:
		j = judgement{metav1.ConditionFalse, reasonDemoting, fmt.Sprintf("%d of %d partitions are being demoted%s", len(demoting), n, some(demoting))}
	case claimed < n && s.Role != api.GridSiteActive:
		j = judgement{metav1.ConditionUnknown, reasonStandbyBeginning, fmt.Sprintf("%d of %d partitions have no primary yet; see condition %s", n-claimed, n, api.ConditionAvailable)}
	case s.Role == api.GridSiteMixed:
		j = judgement{metav1.ConditionFalse, reasonMixed, fmt.Sprintf("%d of %d partitions are standbys of %s, term %d%s. The others take orders", len(waiting), n, o.otherSite(), s.Term, some(waiting))}
	case s.Role == api.GridSiteStandby:
		j = judgement{metav1.ConditionTrue, reasonStandby, fmt.Sprintf("%s of %s, in term %d", all(n, "partition is a standby", "partitions are standbys"), o.otherSite(), s.Term)}
	default:
		return judgement{metav1.ConditionFalse, reasonActive, fmt.Sprintf("the grid takes orders, in term %d of its site", s.Term)}
	}
	if len(waiting) > 0 {
		j.message = strings.TrimSuffix(j.message, ".") + ". " + o.lagText()
	}
	return j
}

// lagText is how far behind the standby is. The grid does not know where the other site's log ends.
func (o *observation) lagText() string {
	return "How far behind they are is known to the link: its GridLink, or ordergrid_link_lag_seconds"
}
