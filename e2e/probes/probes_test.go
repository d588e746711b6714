//go:build e2e

// Package probes runs an OrderProbe of every scenario that measures an OrderGrid in pods, and a series of them, quickly: the
// tables are for a machine that has time, what is asked here is that there is one, and that no order was lost.
// `make e2e SUITE=probes` runs it; suite has the other scenarios.
package probes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/fixture"
)

const namespace = "ordergrid-probes"

// overrides that keep a scenario short.
const (
	brief  = `{"ratesPerProbe":[200],"warmup":"1s","measure":"4s","repeats":1}`
	search = `{"warmup":"1s","measure":"2s","search":{"from":200,"to":800,"limit":"50ms"}}`
	played = `{"warmup":"1s","measure":"4s","repeats":1}`
)

// scenarios are all of them, each with the grid it is about and what else it needs.
var scenarios = []struct {
	name       api.Scenario
	grid, more string
}{
	{api.ScenarioSingle, "single", `"overrides":` + brief},
	{api.ScenarioPair, "pair", `"overrides":` + brief},
	{api.ScenarioScale, "pairs", `"overrides":` + brief},
	{api.ScenarioKnee, "pair", `"overrides":` + search},
	{api.ScenarioHawkes, "pair", `"overrides":` + brief},
	{api.ScenarioDay, "pair", `"overrides":` + brief},
	{api.ScenarioReplay, "pair", `"arrival":{"type":"Replay","replay":{"format":"Lobster","speeds":[1,4],"source":{"configMap":{"name":"recording","key":"messages.csv"}}}},"overrides":` + played},
	{api.ScenarioWrite, "single", `"overrides":` + brief},
	{api.ScenarioWrite, "pair", `"overrides":` + brief},
}

func TestProbes(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	s := suite{fixture.New(t, namespace)}
	s.Open(ctx)
	s.Restrict(ctx)
	s.Apply(ctx, "grids.yaml")
	s.record(ctx)
	for _, grid := range []string{"pairs", "pair"} {
		s.Condition(ctx, "ordergrid", grid, api.ConditionRedundant, "True")
	}
	s.Condition(ctx, "ordergrid", "single", api.ConditionAvailable, "True")
	for _, c := range scenarios {
		t.Run(string(c.name)+"-"+c.grid, func(t *testing.T) { suite{s.On(t)}.play(ctx, c.name, c.grid, c.more) })
	}
	t.Run("series", func(t *testing.T) { suite{s.On(t)}.series(ctx) })
}

type suite struct{ *fixture.Fixture }

// record makes the recording that is replayed: 2,000 new orders, one each 5 ms.
func (s suite) record(ctx context.Context) {
	s.Helper()
	var csv strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&csv, "%.3f,1,%d,%d,%d,%d\n", 34200+float64(i)*0.005, 1000+i, 100+i%7, 2239500+i%50*100, 1-i%2*2)
	}
	manifest, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]string{"name": "recording", "namespace": namespace},
		"data": map[string]string{"messages.csv": csv.String()}})
	if err != nil {
		s.Fatal(err)
	}
	s.Must(s.Kube.Apply(ctx, manifest))
}

// play runs one OrderProbe to its end.
func (s suite) play(ctx context.Context, scenario api.Scenario, grid, more string) {
	name := string(scenario) + "-" + grid
	p := Play(ctx, s.Fixture, name, fmt.Sprintf(`"gridRef":{"name":%q},"scenario":%q,"parameters":"Quick",%s`, grid, scenario, more), fixture.Patience)
	s.Log("\n" + s.Must(s.Kube.Run(ctx, "get", "configmap", name+"-report", "-n", namespace, "-o", `jsonpath={.data.table\.txt}`)))
	if len(p.Status.Rows) == 0 {
		s.Error("the report has no row")
	}
	s.remove(ctx, name)
}

// remove deletes an OrderProbe, and wants nothing of it left.
func (s suite) remove(ctx context.Context, name string) {
	s.Helper()
	s.Must(s.Kube.Run(ctx, "delete", "orderprobe", name, "-n", namespace, "--wait"))
	s.Eventually(ctx, "nothing of "+name, fixture.Patience, func(ctx context.Context) error {
		out, err := s.Kube.Run(ctx, "get", "orderprobes,jobs,pods,configmaps,roles,rolebindings,serviceaccounts", "-n", namespace, "-o", "name")
		if err == nil && strings.Contains(out, "/"+name) {
			err = errors.New(out)
		}
		return err
	})
}

// series is an OrderProbe that is run each minute, until one of its runs is in its status.
func (s suite) series(ctx context.Context) {
	s.Must(s.Kube.Apply(ctx, fmt.Appendf(nil, `{"apiVersion":"ordergrid.dev/v1alpha1","kind":"OrderProbe","metadata":{"name":"minutely","namespace":%q},"spec":{"gridRef":{"name":"pair"},"scenario":"stac-pair","parameters":"Quick","overrides":%s,"schedule":{"cron":"* * * * *"}}}`,
		namespace, brief)))
	s.Eventually(ctx, "a run of the series", fixture.Patience, func(ctx context.Context) error {
		p := &api.OrderProbe{}
		err := s.Kube.Get(ctx, p, "orderprobe", "minutely", "-n", namespace)
		if err == nil && len(p.Status.Runs) == 0 {
			err = fmt.Errorf("%+v", p.Status.Conditions)
		}
		if err == nil {
			s.Logf("%+v", p.Status.Runs[0])
		}
		return err
	})
	s.remove(ctx, "minutely")
}
