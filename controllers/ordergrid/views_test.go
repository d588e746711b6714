package ordergrid

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

func viewsGrid(copies api.ViewCopies) *api.OrderGrid {
	grid := pairGrid()
	grid.Spec.Memory = resource.MustParse("1Gi")
	grid.Spec.Views = &api.ViewsSpec{Copies: copies, Memory: resource.MustParse("512Mi"), Rows: 1 << 20, Values: 1 << 16}
	grid.Spec.OrderIndex = []api.OrderIndex{{Tag: 5001, Type: api.OrderIndexText, Name: "Desk"}, {Tag: 126, Type: api.OrderIndexTime}}
	return grid
}

func TestViewArgs(t *testing.T) {
	args := strings.Join(nodeArgs(viewsGrid(api.ViewsOnBackups), 0), " ")
	for _, want := range []string{
		"--memory-limit 1728Mi ", // 1Gi, 512Mi and 192Mi
		" --views 512Mi --view-rows 1048576 --view-values 65536 --view-copies backup --order-index 5001:text:Desk --order-index 126:time ",
	} {
		if !strings.Contains(args, want) {
			t.Errorf("%s\nlacks %q", args, want)
		}
	}
	if args := nodeArgs(viewsGrid(api.ViewsOnAll), 0); slices.Contains(args, "--view-copies") {
		t.Error(args)
	}
	if args := nodeArgs(pairGrid(), 0); slices.Contains(args, "--views") {
		t.Errorf("without spec.views: %v", args)
	}
	with, without := resources(viewsGrid(api.ViewsOnAll)), resources(pairGrid())
	if a, b := with.Limits.Memory(), without.Limits.Memory(); a.Value()-b.Value() < 512<<20 {
		t.Errorf("the pod's memory is %s with views of 512Mi, %s without", a, b)
	}
}

// TestViewsComplete: the condition is about the copies that are to have views, and does not say more than is known.
func TestViewsComplete(t *testing.T) {
	for name, test := range map[string]struct {
		copies api.ViewCopies
		change func(o *observation, views map[string][]nodestatus.PartitionView)
		want   string
		text   string
	}{
		"whole":           {api.ViewsOnAll, func(*observation, map[string][]nodestatus.PartitionView) {}, "True/Complete", "in whole views"},
		"no spec":         {api.ViewsOnAll, func(o *observation, _ map[string][]nodestatus.PartitionView) { o.grid.Spec.Views = nil }, "/", ""},
		"nodes not asked": {api.ViewsOnAll, func(o *observation, _ map[string][]nodestatus.PartitionView) { o.roomAsked = false }, "Unknown/NodesSilent", "no grid node has answered"},
		"one ends early": {api.ViewsOnAll, func(_ *observation, v map[string][]nodestatus.PartitionView) {
			v["rtd-s0-1"][0].Error = "no room for the values of Account"
		}, "False/Incomplete", "p0 on rtd-s0-1: no room for the values of Account"},
		"one lags":            {api.ViewsOnAll, func(_ *observation, v map[string][]nodestatus.PartitionView) { v["rtd-s0-0"][0].Lag = 200_000 }, "False/Behind", "p0 on rtd-s0-0"},
		"a pod without views": {api.ViewsOnAll, func(_ *observation, v map[string][]nodestatus.PartitionView) { v["rtd-s0-0"] = nil }, "False/Starting", "p0 on rtd-s0-0"},
		"a silent pod":        {api.ViewsOnAll, func(_ *observation, v map[string][]nodestatus.PartitionView) { delete(v, "rtd-s0-0") }, "Unknown/NodesSilent", "rtd-s0-0"},
		"on backups":          {api.ViewsOnBackups, func(_ *observation, v map[string][]nodestatus.PartitionView) { v["rtd-s0-0"][0].Kept = false }, "True/Complete", ""},
		"on no copy": {api.ViewsOnBackups, func(_ *observation, v map[string][]nodestatus.PartitionView) {
			v["rtd-s0-0"][0].Kept, v["rtd-s0-1"][0].Kept = false, false
		}, "False/Starting", "p0"},
		"on backups, not whole": {api.ViewsOnBackups, func(_ *observation, v map[string][]nodestatus.PartitionView) {
			v["rtd-s0-0"][0].Kept, v["rtd-s0-1"][0].Error = false, "it ends"
		}, "False/Incomplete", "rtd-s0-1: it ends"},
	} {
		t.Run(name, func(t *testing.T) {
			o := healthy()
			o.grid.Spec.Views = viewsGrid(test.copies).Spec.Views
			views := map[string][]nodestatus.PartitionView{}
			for i := range o.partitions {
				for _, m := range o.partitions[i].Status.InSync {
					views[m.PodName] = append(views[m.PodName], nodestatus.PartitionView{Partition: fmt.Sprintf("p%d", o.partitions[i].Spec.Partition), Kept: true})
				}
			}
			o.roomAsked = true
			test.change(o, views)
			var answers []*nodestatus.Memory
			for pod, v := range views {
				m := memoryOf(pod, 100, nil)
				m.Views = v
				answers = append(answers, m)
			}
			o.room = roomOf(answers, len(answers))
			j := judgeViews(o)
			if got := string(j.status) + "/" + j.reason; got != test.want || !strings.Contains(j.message, test.text) {
				t.Errorf("%s: %s\nwant %s: … %s", got, j.message, test.want, test.text)
			}
		})
	}
}
