package tlsflag

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"
)

// TestArgs: another program is given what this one was given, under names without a prefix.
func TestArgs(t *testing.T) {
	for _, prefix := range []string{"", "fix-"} {
		f, set := Of(prefix), pflag.NewFlagSet("", pflag.ContinueOnError)
		f.Register(set, "TLS is used")
		f.RegisterToken(set)
		given := []string{"tls-cert", "a.crt", "tls-ca", "ca.crt", "tls-name", "grid", "token-file", "token"}
		var args, want []string
		for i := 0; i < len(given); i += 2 {
			args, want = append(args, "--"+prefix+given[i], given[i+1]), append(want, "--"+given[i], given[i+1])
		}
		if err := set.Parse(args); err != nil {
			t.Fatal(err)
		}
		if got := f.Args(); !slices.Equal(got, want) {
			t.Errorf("prefix %q: %v, want %v", prefix, got, want)
		}
	}
	if got := (&Flags{}).Args(); got != nil {
		t.Errorf("nothing was given: %v", got)
	}
}
