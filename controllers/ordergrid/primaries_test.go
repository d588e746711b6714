package ordergrid

import (
	"slices"
	"strings"
	"testing"
)

func TestPrimaries(t *testing.T) {
	for name, c := range map[string]struct{ pods, asked, before, want string }{
		"new":                            {"a b", "- - - -", "- - - -", "a b a b"},
		"as they are":                    {"a b", "- - - -", "b a a b", "b a a b"},
		"one comes":                      {"a b", "- - - - -", "b a a b -", "b a a b a"},
		"one comes from another shard":   {"a b", "- - -", "a b z", "a b a"},
		"one left, and no other changes": {"a b", "- - -", "b a b", "b a b"},
		"two left, and one pod has both": {"a b", "- -", "b b", "b a"},
		"a pod comes":                    {"a b c", "- - - - - -", "a b a b a b", "a b a b c c"},
		"a pod goes":                     {"a b", "- - - - - -", "a b a b c c", "a b a b a b"},
		"a user asks":                    {"a b", "b - - -", "a b a b", "b b a b"},
		"all are requested":              {"a b", "b b b b", "a b a b", "b b b b"},
		"an absent pod is requested":     {"a b", "c -", "a b", "a b"},
		"a request was removed":          {"a b", "- - - -", "b b b b", "b b a a"},
		"one copy":                       {"a", "- -", "a b", "a a"},
		"no partition":                   {"a b", "", "", ""},
	} {
		list := func(s string) []string { return strings.Fields(s) }
		none := func(l []string) []string {
			for i := range l {
				l[i] = strings.ReplaceAll(l[i], "-", "")
			}
			return l
		}
		got := primaries(list(c.pods), none(list(c.asked)), none(list(c.before)))
		if !slices.Equal(got, list(c.want)) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if !strings.ContainsAny(c.asked, "abc") {
			if again := primaries(list(c.pods), none(list(c.asked)), got); !slices.Equal(again, got) {
				t.Errorf("%s: %q becomes %q", name, got, again)
			}
		}
	}
}
