package main

import (
	"flag"
	"fmt"
	"io"

	"github.com/ordergrid/ordergrid/hack/bench/floor"
	"github.com/ordergrid/ordergrid/hack/bench/generator"
)

// relayProcess is one process of the floor in Go.
func relayProcess(args []string, _ io.Reader, out io.Writer) error {
	var c floor.Config
	fs := flag.NewFlagSet("relay", flag.ContinueOnError)
	fs.StringVar(&c.Listen, "listen", "127.0.0.1:0", "ip:port")
	fs.StringVar(&c.Backup, "backup", "", "ip:port of the second process")
	fs.BoolVar(&c.Sink, "sink", false, "be the second process")
	fs.IntVar(&c.Request, "request", 305, "bytes of a message")
	fs.IntVar(&c.Reply, "reply", 8, "bytes of an answer")
	if err := fs.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return floor.Relay(c, out)
}

// generateProcess is one run of the load generator.
func generateProcess(_ []string, in io.Reader, out io.Writer) error { return generator.Main(in, out) }
