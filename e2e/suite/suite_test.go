//go:build e2e

// Package suite runs what starts grids of its own in a pod: two scenarios by themselves, and OrderProbe `suite`, quick. What
// is asked is a row with a verdict for each of the 35 published tables, on a machine that has other work.
// `make e2e SUITE=suite` runs it.
package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/fixture"
	"github.com/ordergrid/ordergrid/e2e/probes"
	"github.com/ordergrid/ordergrid/probe/report"
)

const (
	namespace = "ordergrid-suite"
	// oneLimit and suiteLimit are how long a scenario and the suite may take, on a machine that has other work.
	oneLimit, suiteLimit = 15 * time.Minute, 70 * time.Minute
	// tables were published.
	tables = 35
)

func TestSuiteInPods(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 88*time.Minute)
	defer cancel()
	s := suite{fixture.New(t, namespace)}
	s.Open(ctx)
	s.Restrict(ctx)
	for _, name := range []string{"match-flash", "bar-client"} {
		t.Run(name, func(t *testing.T) {
			p := suite{s.On(t)}.play(ctx, name, "", oneLimit)
			if len(p.Status.Verdicts) != 3 {
				t.Errorf("verdicts %+v", p.Status.Verdicts)
			}
		})
	}
	t.Run("suite", func(t *testing.T) { suite{s.On(t)}.all(ctx) })
}

type suite struct{ *fixture.Fixture }

// play runs an OrderProbe to its end and prints its table. That the machine disturbed it is no failure.
func (s suite) play(ctx context.Context, scenario, more string, limit time.Duration) *api.OrderProbe {
	s.Helper()
	p := probes.Play(ctx, s.Fixture, scenario, fmt.Sprintf(`"scenario":%q,"parameters":"Quick"%s`, scenario, more), limit)
	s.Log("\n" + s.file(ctx, p, report.FileTable))
	if page := s.file(ctx, p, report.FilePage); !strings.Contains(page, "<html") {
		s.Errorf("the page is %.200q", page)
	}
	job := &batchv1.Job{}
	s.Must("", s.Kube.Get(ctx, job, "job", scenario, "-n", namespace))
	if job.Status.Failed > 0 || job.Spec.ActiveDeadlineSeconds == nil {
		s.Errorf("job %+v", job.Status)
	}
	return p
}

func (s suite) file(ctx context.Context, p *api.OrderProbe, name string) string {
	s.Helper()
	return s.Must(s.Kube.Run(ctx, "get", "configmap", p.Status.ReportConfigMap, "-n", namespace, "-o", `jsonpath={.data.`+strings.ReplaceAll(name, ".", `\.`)+`}`))
}

// all is the suite: a row for each table in status and in the report, none without a verdict.
func (s suite) all(ctx context.Context) {
	p := s.play(ctx, string(api.ScenarioSuite), `,"budget":"45m"`, suiteLimit)
	if len(p.Status.Rows) != tables {
		s.Errorf("%d rows in status, want %d", len(p.Status.Rows), tables)
	}
	var full report.Suite
	if err := json.Unmarshal([]byte(s.file(ctx, p, report.FileResults)), &full); err != nil {
		s.Fatal(err)
	}
	if len(full.Rows) != tables {
		s.Errorf("%d rows in the report, want %d", len(full.Rows), tables)
	}
	for _, r := range full.Rows {
		if r.Verdict == "" || r.Verdict != report.Pass && r.Reason == "" {
			s.Errorf("%s %s: verdict %q, reason %q", r.Report, r.Table, r.Verdict, r.Reason)
		}
		if r.Verdict == report.NotRun {
			s.Errorf("%s %s: %s was not run: %s", r.Report, r.Table, r.Scenario, r.Reason)
		}
	}
}
