package main

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/client"
)

// listener serves one protocol on ports of its own.
type listener interface {
	prometheus.Collector
	// Run serves until ctx ends, or it fails. When ctx ends its clients are told why, and have
	// drainTime to go.
	Run(ctx context.Context) error
	// NotReady names what keeps clients from being served; none: nothing does.
	NotReady() []string
	// Status is its part of /status, for JSON.
	Status() any
}

// protocol is what a file of this program adds: flags, and what they open.
type protocol interface {
	name() string // in /status and in messages
	add(fl *pflag.FlagSet)
	// asked reports whether the command line asks for it; hint has how to.
	asked() bool
	hint() string
	// check refuses a wrong command line, before anything is dialled.
	check() error
	// open listens; Run serves.
	open(ctx context.Context, g grid) (listener, error)
}

// grid is what a listener serves.
type grid struct {
	*client.Client
	log    *slog.Logger
	common *flags // for a protocol that dials for its clients
}

// protocols has a line for each.
func protocols() []protocol {
	return []protocol{
		&fixProtocol{},
		&websocketProtocol{},
		&sqlProtocol{},
	}
}
