package link

import (
	"strings"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	good := Config{SourceName: "a", Reader: "link"}
	if err := good.Check(); err != nil || good.Batch != DefaultBatch || good.Buffer != defaultBuffer {
		t.Fatalf("%+v: %v", good, err)
	}
	for want, change := range map[string]func(*Config){
		`name of the reader is "Link", allowed`:            func(c *Config) { c.Reader = "Link" },
		`name of the source is "", allowed`:                func(c *Config) { c.SourceName = "" },
		"batch is -1, allowed: 1..1048576 entries":         func(c *Config) { c.Batch = -1 },
		"batch is 1048577, allowed":                        func(c *Config) { c.Batch = MaxBatch + 1 },
		"delay is -1ns, allowed: 0 to 1m0s":                func(c *Config) { c.Delay = -1 },
		"delay is 1m0.000000001s, allowed":                 func(c *Config) { c.Delay = time.Minute + 1 },
		"maxBandwidth is 65535, allowed: 65536 bytes":      func(c *Config) { c.MaxBandwidth = MinBandwidth - 1 },
		"maxBandwidth is -1, allowed":                      func(c *Config) { c.MaxBandwidth = -1 },
		"buffer is 1, allowed: 65536..1073741824 bytes":    func(c *Config) { c.Buffer = 1 },
		"buffer is 2147483648, allowed: 65536..1073741824": func(c *Config) { c.Buffer = 2 << 30 },
	} {
		c := good
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
