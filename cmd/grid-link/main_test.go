package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/internal/command"
)

// What is wrong on the command line is named, with what is allowed, before anything is connected.
func TestUsage(t *testing.T) {
	const grids = "--source-grid a --source-endpoint 127.0.0.1:1 --target-grid b --target-endpoint 127.0.0.1:1"
	for args, want := range map[string]string{
		"run":                                    `--source-grid: value "", allowed: a name; it is required`,
		"run --source-grid a":                    `--source-endpoint: value "", allowed: host:port; it is required`,
		"run " + grids + " --target-grid=":       `--target-grid: value "", allowed: a name`,
		"run " + grids + " --partition x":        "--partition: ",
		"run " + grids + " --reader Link":        `name of the reader is "Link", allowed`,
		"run " + grids + " --batch -1":           "batch is -1, allowed: 1..1048576 entries",
		"run " + grids + " --delay 2m":           "delay is 2m0s, allowed: 0 to 1m0s",
		"run " + grids + " --max-bandwidth 1":    "maxBandwidth is 1, allowed: 65536 bytes a second or more",
		"run " + grids + " --log-level loud":     `--log-level: value "loud", allowed`,
		"run " + grids + " --log-format xml":     `--log-format: value "xml", allowed`,
		"run " + grids + " --source-tls-cert x":  "--source-tls-key",
		"run " + grids + " --target-tls-key x":   "--target-tls-cert",
		"run --nothing":                          "see grid-link run --help",
		"run extra":                              `argument "extra", allowed: flags only`,
		"sites":                                  `--source-grid: value ""`,
		"orphans " + grids + " --format parquet": `--format: value "parquet", allowed: csv, json`,
	} {
		root := rootCommand()
		root.SetArgs(strings.Fields(args))
		root.SetOut(&bytes.Buffer{})
		root.SetErr(&bytes.Buffer{})
		err := root.ExecuteContext(t.Context())
		if command.ExitCode(err) != command.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("grid-link %s: %v, want a usage error with %q", args, err, want)
		}
	}
}
