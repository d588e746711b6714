package prometheus

import (
	"os"
	"strings"
	"testing"
)

func TestVersionMatchesModule(t *testing.T) {
	content, err := os.ReadFile("binaries/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	// Release 3.13.5 is version 0.313.5 of the module.
	want := "github.com/prometheus/prometheus v0." + strings.Replace(version, ".", "", 1)
	if !strings.Contains(string(content), want) {
		t.Errorf("binaries/go.mod does not require %s; the version written into the programs would be wrong", want)
	}
}
