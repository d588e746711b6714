package v1alpha1_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// TestWrongManifests applies every manifest in testdata/invalid. Each must be refused, with the message its first line
// expects: one that names the field, the value and the remedy.
func TestWrongManifests(t *testing.T) {
	c := newClient(t)
	files, err := filepath.Glob("testdata/invalid/*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d files in testdata/invalid, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			object, want := readExpectation(t, file)
			err := c.Create(t.Context(), object, client.DryRunAll)
			if err == nil {
				t.Fatalf("accepted; want: %s", want)
			}
			t.Log(err)
			if !strings.Contains(err.Error(), want) {
				t.Errorf("message\n got: %v\nwant: %s", err, want)
			}
			// Kubernetes' own check of a quantity is a regular expression, to which ours adds what to do.
			if n := strings.Count(err.Error(), "Invalid value"); n > 1 && !strings.Contains(err.Error(), "should match") && !strings.Contains(err.Error(), "Unsupported value") && !strings.Contains(err.Error(), "Required value") {
				t.Errorf("%d complaints about one mistake: %v", n, err)
			}
		})
	}
}

func readExpectation(t *testing.T, file string) (*unstructured.Unstructured, string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	first, manifest, _ := strings.Cut(string(data), "\n")
	want, ok := strings.CutPrefix(first, "# expect: ")
	if !ok || want == "" {
		t.Fatalf("%s: the first line must be `# expect: message`", file)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(manifest), object); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return object, want
}
