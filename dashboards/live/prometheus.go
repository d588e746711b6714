package live

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// Scrape is the scrape interval: short, because a run is short.
const Scrape = time.Second

const prometheusAddress = "127.77.3.1:9090"

// PrometheusURL is the server's URL.
const PrometheusURL = "http://" + prometheusAddress

// targets by kind, as the files that Prometheus watches.
type targets map[string][]targetGroup

type targetGroup struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// addTarget adds a pod to Prometheus, with the meta labels of Kubernetes' discovery.
func (r *Run) addTarget(kind, address, ns, pod string, labels map[string]string) error {
	meta := map[string]string{"__meta_kubernetes_namespace": ns, "__meta_kubernetes_pod_name": pod}
	for k, v := range labels {
		meta["__meta_kubernetes_pod_label_"+strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(k)] = v
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.targets[kind] = append(r.targets[kind], targetGroup{[]string{address}, meta})
	return r.writeTargets(kind)
}

func (r *Run) writeTargets(kind string) error {
	text, err := json.Marshal(r.targets[kind])
	if err != nil {
		return err
	}
	file := filepath.Join(r.o.Dir, "targets-"+kind+".json")
	if err := os.WriteFile(file+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file) // Prometheus must not read half of it
}

// relabeling is a rule as in monitors of the Prometheus operator.
type relabeling struct {
	SourceLabels []string `json:"sourceLabels,omitempty"`
	TargetLabel  string   `json:"targetLabel,omitempty"`
	Replacement  string   `json:"replacement,omitempty"`
}

// startPrometheus configures the server with the chart's own rules for labels, and starts it.
func (r *Run) startPrometheus(ctx context.Context) error {
	text, err := os.ReadFile(r.o.Labels)
	if err != nil {
		return err
	}
	var kinds map[string][]relabeling
	if err := yaml.UnmarshalStrict(text, &kinds); err != nil {
		return fmt.Errorf("%s: %w", r.o.Labels, err)
	}
	r.targets = targets{}
	var jobs []map[string]any
	for _, kind := range []string{"nodes", "probes", "operator"} {
		if len(kinds[kind]) == 0 {
			return fmt.Errorf("%s: nothing about %s", r.o.Labels, kind)
		}
		var rules []map[string]any
		for _, k := range kinds[kind] {
			rule := map[string]any{"target_label": k.TargetLabel}
			if len(k.SourceLabels) > 0 {
				rule["source_labels"] = k.SourceLabels
			}
			if k.Replacement != "" {
				rule["replacement"] = k.Replacement
			}
			rules = append(rules, rule)
		}
		if err := r.writeTargets(kind); err != nil {
			return err
		}
		jobs = append(jobs, map[string]any{"job_name": kind, "scrape_native_histograms": true, "honor_labels": kind == "operator", "relabel_configs": rules,
			"file_sd_configs": []any{map[string]any{"files": []string{"targets-" + kind + ".json"}, "refresh_interval": "1s"}}})
	}
	config := map[string]any{"global": map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}, "scrape_configs": jobs,
		"rule_files": []string{r.o.Rules}}
	if text, err = yaml.Marshal(config); err != nil {
		return err
	}
	file := filepath.Join(r.o.Dir, "prometheus.yml")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	r.o.Say("start Prometheus at %s", PrometheusURL)
	p, err := r.spawn("prometheus", nil, r.o.Prometheus, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(r.o.Dir, "tsdb"), "--web.listen-address="+prometheusAddress)
	if err != nil {
		return err
	}
	r.others = append(r.others, p)
	return r.Until(ctx, "Prometheus is ready", func() bool {
		resp, err := http.Get(PrometheusURL + "/-/ready")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}
