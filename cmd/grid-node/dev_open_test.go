package main

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/dev"
)

// dev prints who can reach the grid, unless it has TLS.
func TestDevSaysForWhomItIsOpen(t *testing.T) {
	for _, c := range []struct {
		host string
		tls  *dev.TLS
		want string
	}{
		{"127.0.0.1", nil, "every program of this machine may submit, read and replace orders"},
		{"127.7.0.1", nil, "every program of this machine may"},
		{"::1", nil, "every program of this machine may"},
		{"0.0.0.0", nil, "any host that reaches 0.0.0.0 may"},
		{"10.0.0.5", nil, "any host that reaches 10.0.0.5 may"},
		{"10.0.0.5", &dev.TLS{}, ""},
	} {
		var out strings.Builder
		printInfo(&out, dev.Options{Host: c.host, Grid: "dev"}, dev.Info{Grid: "dev", TLS: c.tls})
		if c.want == "" && strings.Contains(out.String(), "no TLS") || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %s, want %q", c.host, out.String(), c.want)
		}
	}
}
