package floor

import (
	"io"
	"strings"
	"testing"
)

func TestRelayRefuses(t *testing.T) {
	good := Config{Listen: "127.0.0.1:0", Request: 305, Reply: 8}
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Listen = "nowhere" }, `--listen: value "nowhere", allowed: ip:port`},
		{func(c *Config) { c.Backup = "nowhere" }, `--backup: value "nowhere", allowed: ip:port`},
		{func(c *Config) { c.Sink, c.Backup = true, "127.0.0.1:1" }, "--sink and --backup: allowed: one of them"},
		{func(c *Config) { c.Request = 7 }, "--request: value 7, allowed: 8..65536 bytes"},
		{func(c *Config) { c.Reply = 1 << 20 }, "--reply: value 1048576, allowed: 8..65536 bytes"},
	} {
		cfg := good
		c.change(&cfg)
		if err := Relay(cfg, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
