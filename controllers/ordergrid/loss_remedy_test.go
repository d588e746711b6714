package ordergrid

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// The remedy of DataLossSuspected names what keeps the orders before the command that gives them up.
func TestLossRemedy(t *testing.T) {
	const command = "give up what only they held: kubectl annotate -n trading gridpartition rtd-p0 ordergrid.dev/accept-data-loss=7"
	for _, tc := range []struct {
		name  string
		sinks []api.SinkSpec
		epoch int64 // of an accepted loss
		want  string
	}{
		{"nothing keeps them", []api.SinkSpec{{Name: "files", Type: api.SinkFile}}, 0, "If none of them can be brought back, " + command},
		{"an archive", []api.SinkSpec{{Name: "link", Type: api.SinkExternal}, {Name: "cold", Type: api.SinkArchive}}, 0,
			"If none of them can be brought back, restore the grid from what sink cold has archived (docs/archive.md; kubectl ordergrid archive restore --dry-run shows up to which order); otherwise, " + command},
		{"perhaps a standby", []api.SinkSpec{{Name: "link", Type: api.SinkExternal}}, 0, "promote its standby in another site if it has one (docs/multi-site.md); otherwise, " + command},
		{"accepted", []api.SinkSpec{{Name: "cold", Type: api.SinkArchive}}, 7, "The loss is accepted: a grid node begins lineage 3"},
	} {
		grid := &api.OrderGrid{Spec: api.OrderGridSpec{Sinks: tc.sinks}}
		p := &api.GridPartition{ObjectMeta: metav1.ObjectMeta{Name: "rtd-p0", Namespace: "trading"}, Spec: api.GridPartitionSpec{AcceptDataLossEpoch: tc.epoch},
			Status: api.GridPartitionStatus{Epoch: 7, Lineage: 2}}
		if got := lossRemedy(grid, p); !strings.HasSuffix(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
