package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

type scrapeConfig struct {
	Jobs []struct {
		Name      string `json:"job_name"`
		Discovery []struct {
			Kubeconfig string `json:"kubeconfig_file"`
		} `json:"kubernetes_sd_configs"`
		Relabel []struct {
			Source []string `json:"source_labels"`
			Target string   `json:"target_label"`
		} `json:"relabel_configs"`
	} `json:"scrape_configs"`
	Rules []string `json:"rule_files"`
}

func source(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../prometheus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestLabels: a Prometheus without its operator sets the same labels as the chart's monitors.
func TestLabels(t *testing.T) {
	text, err := os.ReadFile("../../../charts/ordergrid/files/scrape/labels.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][]struct {
		SourceLabels             []string
		TargetLabel, Replacement string
	}
	if err := yaml.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	var c scrapeConfig
	if err := yaml.Unmarshal(source(t), &c); err != nil {
		t.Fatal(err)
	}
	kinds := []string{"nodes", "probes", "sinks", "links", "gateways", "operator"}
	if len(c.Jobs) != len(kinds) {
		t.Fatalf("%d jobs", len(c.Jobs))
	}
	for i, kind := range kinds {
		made := map[string]string{"job": c.Jobs[i].Name}
		for _, r := range c.Jobs[i].Relabel {
			if r.Target != "" {
				made[r.Target] = strings.Join(r.Source, ",")
			}
		}
		if len(made) != len(want[kind]) {
			t.Errorf("%s: labels %v, the monitors set %+v", kind, made, want[kind])
		}
		for _, w := range want[kind] {
			if made[w.TargetLabel] != strings.Join(w.SourceLabels, ",")+w.Replacement {
				t.Errorf("%s: %s from %q, the monitors use %v%s", kind, w.TargetLabel, made[w.TargetLabel], w.SourceLabels, w.Replacement)
			}
		}
	}
}

func TestConfigure(t *testing.T) {
	text, err := configure(source(t), "/k", "/r", 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var c scrapeConfig
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	for _, j := range c.Jobs {
		if len(j.Discovery) != 1 || j.Discovery[0].Kubeconfig != "/k" {
			t.Errorf("%s: %+v", j.Name, j.Discovery)
		}
	}
	if len(c.Rules) != 1 || c.Rules[0] != "/r" || !strings.Contains(string(text), "scrape_interval: 2s") {
		t.Errorf("%s", text)
	}
	if _, err := configure([]byte("{}"), "/k", "/r", time.Second); err == nil {
		t.Error("a configuration without jobs is accepted")
	}
}
