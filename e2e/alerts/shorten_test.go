package alerts

import (
	"os"
	"strings"
	"testing"
)

func TestShorten(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"rate(x[5m])", "rate(x[15000ms])"},
		{"rate(x[1m])", "rate(x[4000ms])"}, // not below four seconds
		{"grid:x:rate5m > 0.1", "grid:x:rate5m > 0.1"},
		{"        for: 2m\n", "        for: 6000ms\n"},
		{"        for: 0s\n", "        for: 0ms\n"},
		{"        for: 30s\n", "        for: 1500ms\n"},
		{"expires - time() < 3 * 86400", "expires - time() < 3 * 86400"},
		{"description: it waits for: 5m of it", "description: it waits for: 5m of it"},
	} {
		if got := string(Shorten([]byte(c.in), 20)); got != c.want {
			t.Errorf("Shorten(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

// No duration of the real rules is left as it is.
func TestShortenReachesAllOfTheRules(t *testing.T) {
	rules, err := os.ReadFile("../../dashboards/rules/ordergrid.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	short := Shorten(rules, 20)
	if n, m := strings.Count(string(rules), "for: "), strings.Count(string(short), "ms\n"); n == 0 || m < n {
		t.Errorf("%d of %d for are shortened", m, n)
	}
	if left := ranges.FindAllString(string(short), -1); len(left) > 0 {
		t.Errorf("left as they are: %v", left)
	}
}

// What is listed as not caused, and what is caused, are together all there is.
func TestEveryAlertIsAccountedFor(t *testing.T) {
	rules, err := os.ReadFile("../../dashboards/rules/ordergrid.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	accounted := map[string]bool{}
	for _, alerts := range known() {
		for _, a := range alerts {
			accounted[a.name] = true
		}
	}
	for _, n := range notCaused {
		accounted[n.alert.name] = true
	}
	for line := range strings.Lines(string(rules)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- alert: "); ok && !accounted[name] {
			t.Errorf("%s is neither caused nor listed as not caused", name)
		}
	}
}
