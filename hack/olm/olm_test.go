package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const checkout = "../.."

// copied is the bundle of the checkout in a directory of its own.
func copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(checkout, bundleDir))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestValidateSees: the bundle is valid, and one that is broken is not.
func TestValidateSees(t *testing.T) {
	if err := validate(copied(t)); err != nil {
		t.Error(err)
	}
	csv := filepath.Join("manifests", "ordergrid.clusterserviceversion.yaml")
	for _, test := range []struct{ file, from, to, says string }{
		{filepath.Join("manifests", "ordergrid.dev_ordergrids.yaml"), "", "", "not found"},
		{csv, "kind: OrderProbe\n", "kind: OrderProbes\n", "OrderProbe"},
		{csv, "minKubeVersion: 1", "minKubeVersion: one", "one"},
		{filepath.Join("metadata", "annotations.yaml"), "candidate-v0", "whenever", "whenever"},
	} {
		dir := copied(t)
		path := filepath.Join(dir, test.file)
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data), test.from) {
			t.Fatalf("%s: %v, or no %q in it", test.file, err, test.from)
		}
		if test.from == "" {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, []byte(strings.ReplaceAll(string(data), test.from, test.to)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(dir); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s, %q as %q: %v; want an error with %q", test.file, test.from, test.to, err, test.says)
		}
	}
}

// TestDiffering: what was changed, is missing or should not be there is named.
func TestDiffering(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{"same": "1", "changed": "1", "gone": "1"} {
		if err := install(filepath.Join(root, bundleDir, "manifests", name+".yaml"), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return bundleDir + "/manifests/" + name + ".yaml" }
	got, err := differing(root, map[string][]byte{at("same"): []byte("1"), at("changed"): []byte("2"), at("new"): []byte("1")})
	if want := []string{at("changed"), at("gone"), at("new")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// TestNothingOfTheChartIsForgotten: an object the bundle has no place for is an error.
func TestNothingOfTheChartIsForgotten(t *testing.T) {
	documents, err := split([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\n"))
	if err != nil || len(documents) != 2 {
		t.Fatalf("%d documents, %v", len(documents), err)
	}
	c := &chart{}
	if err := c.take(documents[0]); err == nil || !strings.Contains(err.Error(), "chart.take") {
		t.Errorf("a ConfigMap: %v", err)
	}
	if err := c.take(documents[1]); err != nil {
		t.Errorf("an account, which OLM makes: %v", err)
	}
}
