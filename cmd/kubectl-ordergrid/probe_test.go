package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

func TestProbeUsage(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"probe", "run"}, "allowed: one of [stac-single stac-pair"},
		{[]string{"probe", "run", "fast"}, `scenario ["fast"], allowed`},
		{[]string{"probe", "run", "stac-pair"}, "--grid is missing"},
		{[]string{"probe", "run", "sol-fanout", "--grid", "trades"}, "--grid trades: the pod of sol-fanout starts the grids that it needs"},
		{[]string{"probe", "report"}, "0 arguments, allowed: the name of one OrderProbe"},
		{[]string{"probe", "report", "x", "-o", "pdf"}, `--output: value "pdf", allowed: table, csv, json`},
		{[]string{"probe", "list", "-o", "csv"}, `--output: value "csv", allowed: table, wide, json, yaml`},
		{[]string{"probe", "measure"}, `unknown command "measure"`},
	} {
		_, err := run(tc.args...)
		var usage usageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: error %v, want a usage error with %q", tc.args, err, tc.want)
		}
	}
}

// measured ends the only probe of the stage, like the operator.
func (s *stage) measured(condition string, verdict api.Verdict) {
	for s.t.Context().Err() == nil {
		var list api.OrderProbeList
		if s.cl.List(s.t.Context(), &list, client.InNamespace(s.ns)) == nil && len(list.Items) == 1 {
			p := &list.Items[0]
			m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: p.Name + "-report", Namespace: s.ns}, Data: map[string]string{"table.txt": "THE TABLE\n", "results.json": "{}"}}
			if s.cl.Create(s.t.Context(), m) != nil {
				return
			}
			p.Status.Verdict, p.Status.VerdictReason = verdict, "because"
			if verdict != "" {
				p.Status.ReportConfigMap = m.Name
			}
			meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "Over", Message: "it is over"})
			if s.cl.Status().Update(s.t.Context(), p) == nil {
				return
			}
			_ = s.cl.Delete(s.t.Context(), m)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// TestProbeRun: the created object, the output, and the exit code.
func TestProbeRun(t *testing.T) {
	for _, tc := range []struct {
		condition string
		verdict   api.Verdict
		code      int
	}{{api.ConditionComplete, api.VerdictValid, 0}, {api.ConditionComplete, api.VerdictIncorrect, 1}, {api.ConditionComplete, api.VerdictInvalid, 3}, {api.ConditionFailed, "", 3}} {
		s := newStage(t)
		go s.measured(tc.condition, tc.verdict)
		out, err := s.run("probe", "run", "stac-pair", "--grid", "trades", "--parameters", "Quick", "--rates", "5,10", "--measure", "2s", "-f")
		s.want(out, err, tc.code, "orderprobe/stac-pair-", "Over: it is over\n")
		if tc.verdict != "" {
			s.want(out, err, tc.code, "THE TABLE\n", "verdict "+string(tc.verdict)+": because\n")
		}
		var list api.OrderProbeList
		s.must(s.cl.List(t.Context(), &list, client.InNamespace(s.ns)))
		p := list.Items[0]
		if o := p.Spec.Overrides; p.Spec.Parameters != api.ParametersQuick || len(o.RatesPerProbe) != 2 || o.Measure.Duration != 2*time.Second {
			t.Errorf("%+v", p.Spec)
		}
		listed, err := s.run("probe", "list")
		s.want(listed, err, 0, p.Name, "Over")
		if tc.code != 0 {
			continue
		}
		out, err = s.run("probe", "report", p.Name)
		s.want(out, err, 0, "THE TABLE")
		page := filepath.Join(t.TempDir(), "page.html")
		if _, err = s.run("probe", "report", p.Name, "--html", page); err == nil || !strings.Contains(err.Error(), "--html: result: schema") {
			t.Errorf("a page without a report: %v", err)
		}
		var usage usageError
		if _, err = s.run("probe", "run", "stac-pair", "--grid", "trades", "--rates", "0"); !errors.As(err, &usage) || !strings.Contains(err.Error(), "is out of range") {
			t.Errorf("error %v", err)
		}
	}
}
