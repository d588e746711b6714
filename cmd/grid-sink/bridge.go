package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/gateway/sink/bridge"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/internal/command"
	"github.com/ordergrid/ordergrid/internal/tlsflag"
)

type bridgeFlags struct {
	to               []string
	grid             string
	region, function string
	tls              tlsflag.Flags
}

func bridgeCommand() *cobra.Command {
	f := bridgeFlags{tls: tlsflag.Of("to-")}
	return targetCommand("bridge", "Put what functions make of orders onto the log of another grid",
		`Takes the records that functions of kind Post make of the orders of a grid, and puts them onto
the log of another one, as values of a region: each once, in the order of its partition's log.
A value and the position behind it are one entry there. docs/bridge.md has the values.

No function is called for what is put there, so bridges in a circle make no end of records.`,
		usualBatches, f.add, f.open)
}

func (f *bridgeFlags) add(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.to, "to", nil, "host:port of any node of the other grid, or of its client service; several separated by commas; required")
	fl.StringVar(&f.grid, "to-grid", "", "name of the other grid; a node of any other one is refused. Default: any")
	fl.StringVar(&f.region, "region", bridge.DefaultRegion, "region of the other grid, which nothing else writes to")
	fl.StringVar(&f.function, "function", "", "name of a function of kind Post; default: the records of all")
	f.tls.Register(fl, "TLS is used for the other grid")
	f.tls.RegisterToken(fl)
}

func (f *bridgeFlags) open(ctx context.Context, of source) (sink.Target, error) {
	switch {
	case len(f.to) == 0:
		return nil, command.BadUsage(errors.New(`--to: value "", allowed: host:port; it is required`))
	case f.function != "" && !order.IsReaderName(f.function):
		return nil, command.BadUsage(fmt.Errorf("--function: value %.40q, allowed: 1 to %d lowercase letters, digits and hyphens", f.function, order.MaxReaderName))
	}
	cfg := client.Config{Endpoints: f.to, Grid: f.grid, Name: "grid-sink/" + of.Sink, DialTimeout: 0, IO: client.IONet, Logger: of.Log, Token: f.tls.Token()}
	var err error
	if cfg.TLS, err = f.tls.Client(); err != nil {
		return nil, command.BadUsage(err)
	}
	to, err := client.Dial(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("--to: %w", err)
	}
	t, err := bridge.New(bridge.Options{Source: of.Client, To: to, Grid: of.Grid, Sink: of.Sink, Region: f.region, Function: f.function})
	if err != nil {
		_ = to.Close()
		return nil, command.BadUsage(err)
	}
	return t, nil
}
