package robustness

import (
	"strings"
	"testing"
)

// Every scenario is complete, and its name tells where it runs.
func TestList(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Scenarios() {
		if seen[s.Name] || s.Short == "" || s.Repeat < 1 || len(s.Targets) == 0 || s.run == nil || s.Goals.String() == "" {
			t.Errorf("scenario %+v", s)
		}
		seen[s.Name] = true
		if s.On("moon") == nil {
			t.Errorf("%s runs on the moon", s.Name)
		}
	}
	if _, err := FindScenario("flood"); err == nil || !strings.Contains(err.Error(), "allowed: calm, kill-primary") {
		t.Errorf("unknown scenario: %v", err)
	}
}
