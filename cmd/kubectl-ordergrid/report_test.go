package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// unpacked are the files of a report by their names.
func unpacked(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(text)
	}
}

func TestReport(t *testing.T) {
	s := newStage(t)
	s.pods() // with SINK_PASSWORD=hunter2
	s.must(s.cl.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "tls", Namespace: s.ns}, StringData: map[string]string{"tls.key": "hunter2"}}))
	s.must(s.cl.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "recording", Namespace: s.ns}, Data: map[string]string{"client.log": "8=FIX.4.4|hunter2"}}))
	s.nodeAt("127.0.72.1", "trades-s0-0", map[string]string{"/status": statusPage("trades-s0-0", "primary", "40", "backup", "7"), "/peers": "{}", "/takeovers": "{}",
		"/clock": "{}", "/pauses": "{}", "/readyz": "ok", "/metrics": "ordergrid_node_up 1\n"})
	path := filepath.Join(t.TempDir(), "r.tar.gz")
	out, err := s.run("report", "--direct", "--out", path, "--operator-namespace", s.ns)
	s.want(out, err, 1, "missing: nodes/trades-s0-1/: the pod is Pending", "missing: operator/logs/: no pod of namespace")
	files := unpacked(t, path)
	for name, want := range map[string]string{
		"r/kinds/ordergrids.yaml": "name: trades", "r/kinds/gridpartitions.yaml": "epoch: 2", "r/kinds/failoverdrills.yaml": "items: []", "r/objects/pods.yaml": "value: '[redacted]'",
		"r/objects/events.yaml": "items:", "r/objects/nodes.yaml": "items:", "r/nodes/trades-s0-0/status.json": `"role":"primary"`, "r/nodes/trades-s0-0/metrics.txt": "ordergrid_node_up 1",
		"r/SUMMARY.txt": "  nodes/trades-s0-1/: the pod is Pending\n", "r/operator/deployments.yaml": "items: []",
	} {
		if !strings.Contains(files[name], want) {
			t.Errorf("%s: no %q in\n%s", name, want, files[name])
		}
	}
	for name, text := range files {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "FIX") {
			t.Errorf("%s has a secret or an order:\n%s", name, text)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	_, err = s.run("report", "--direct", "--out", path)
	var usage usageError
	if !errors.As(err, &usage) || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("error %v", err)
	}
	folder := filepath.Join(t.TempDir(), "report")
	_, err = s.run("report", "--direct", "--out", folder, "--operator-namespace", s.ns)
	if text, readErr := os.ReadFile(filepath.Join(folder, "kinds", "ordergrids.yaml")); readErr != nil || !strings.Contains(string(text), "name: trades") {
		t.Errorf("%v, %v", err, readErr)
	}
}
