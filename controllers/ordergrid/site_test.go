package ordergrid

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// paired is a healthy grid whose partitions have these roles, in term 1.
func paired(roles ...api.SiteRole) *observation {
	o := healthy()
	o.grid.Spec.Site = &api.GridSiteSpec{Role: api.SiteStandby, Source: "site a, orders.a:7400"}
	o.room, o.roomAsked = roomOf([]*nodestatus.Memory{memoryOf("rtd-s0-0", 100, nil)}, 1), true
	for i, role := range roles {
		p := &o.partitions[i]
		p.Spec.Site = &api.PartitionSite{Role: api.SiteStandby}
		p.Status.Site = &api.PartitionSiteStatus{Role: role, Term: 1}
	}
	return o
}

// TestStandbyConditions: a standby is told from a grid that takes orders, in every stage of a change of its role.
func TestStandbyConditions(t *testing.T) {
	a, s := api.SiteActive, api.SiteStandby
	for name, c := range map[string]struct {
		o         *observation
		standby   string // condition Standby
		text      string
		accepting string
		role      api.GridSiteRole
	}{
		"a grid without a pair": {healthyRoom(), "/", "", "True/Accepting", ""},
		"a standby":             {paired(s, s), "True/Standby", "all 2 partitions are standbys of site a, orders.a:7400, in term 1. How far behind", "False/Standby", api.GridSiteStandby},
		"promoted":              {paired(a, a), "False/Active", "the grid takes orders, in term 1 of its site", "True/Accepting", api.GridSiteActive},
		"one of two":            {paired(a, s), "False/Mixed", "1 of 2 partitions are standbys of site a, orders.a:7400, term 1: rtd-p1. The others take orders. How far", "False/Standby", api.GridSiteMixed},
		"not claimed": {changed(paired(), func(o *observation) {
			for i := range o.partitions {
				o.partitions[i].Status = api.GridPartitionStatus{}
			}
		}), "Unknown/Beginning", "2 of 2 partitions have no primary yet", "False/NotClaimed", api.GridSiteStandby},
		"being promoted, clean": {changed(paired(s, s), func(o *observation) {
			o.partitions[0].Spec.Site.Promote = &api.SitePromotion{Term: 2, Mode: api.PromoteClean, Seq: 77, Hash: "00000000000000ff"}
		}), "True/Promoting", "1 of 2 partitions are being promoted: rtd-p0 waits for entry 77 of the other site. How far", "False/Standby", api.GridSiteStandby},
		"promoted earlier, demoted since": {changed(paired(s, s), func(o *observation) {
			o.partitions[0].Spec.Site.Promote = &api.SitePromotion{Term: 1, Mode: api.PromoteForced}
		}), "True/Standby", "all 2 partitions", "False/Standby", api.GridSiteStandby},
		"being demoted": {changed(paired(a, a), func(o *observation) {
			o.partitions[1].Spec.Site.Demote = &api.SiteDemotion{Term: 1}
		}), "False/Demoting", "1 of 2 partitions are being demoted: rtd-p1", "True/Accepting", api.GridSiteActive},
		"demoted in an earlier term": {changed(paired(a, a), func(o *observation) {
			o.partitions[1].Spec.Site.Demote = &api.SiteDemotion{Term: 0}
		}), "False/Active", "takes orders", "True/Accepting", api.GridSiteActive},
	} {
		t.Run(name, func(t *testing.T) {
			j := judgeStandby(c.o)
			if got := string(j.status) + "/" + j.reason; got != c.standby || !strings.Contains(j.message, c.text) {
				t.Errorf("%s: %s\nwant %s: … %s", got, j.message, c.standby, c.text)
			}
			acc := judgeAccepting(c.o)
			if got := string(acc.status) + "/" + acc.reason; got != c.accepting {
				t.Errorf("AcceptingOrders %s: %s, want %s", got, acc.message, c.accepting)
			}
			if av := judgeAvailable(c.o); len(c.o.standbys()) > 0 && (av.status != metav1.ConditionTrue || av.reason != reasonStandby || !strings.Contains(av.message, "take no orders")) {
				t.Errorf("Available is %+v", av)
			}
			if st := c.o.siteStatus(); st == nil && c.role != "" || st != nil && st.Role != c.role {
				t.Errorf("status.site is %+v, want role %q", st, c.role)
			}
		})
	}
}

func healthyRoom() *observation {
	o := paired()
	o.grid.Spec.Site = nil
	return o
}

func changed(o *observation, by func(*observation)) *observation {
	by(o)
	return o
}

// TestRecordsOfStandby: the records say what the first claim makes of them, and keep decisions about the site, which
// are not the operator's.
func TestRecordsOfStandby(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{Partitions: 1, Replicas: 1, Site: &api.GridSiteSpec{Role: api.SiteStandby, Source: "site a"}})
	b.run(grid)
	record := &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "rtd-p0"}}
	b.get(record)
	if s := record.Spec.Site; s == nil || s.Role != api.SiteStandby || s.Source != "site a" {
		t.Fatalf("spec.site of the record is %+v", s)
	}
	b.wantCondition(grid, api.ConditionStandby, metav1.ConditionUnknown, reasonStandbyBeginning, "1 of 1 partitions have no primary yet")
	record.Spec.Site.Promote = &api.SitePromotion{Term: 3, Mode: api.PromoteForced}
	if err := b.client.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	grid.Spec.Site.Source = "site c"
	b.update(grid)
	b.run(grid)
	b.get(record)
	if s := record.Spec.Site; s == nil || s.Source != "site c" || s.Promote == nil || s.Promote.Term != 3 {
		t.Errorf("spec.site of the record is %+v after another pass", s)
	}
}
