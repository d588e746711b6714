// Command bench measures what an order costs, beside the least that any pair of
// processes can do on this machine, in one interleaved run.
//
//	go run ./hack/bench              measure the standard cases
//	go run ./hack/bench list         list the cases
//	go run ./hack/bench compare A.json B.json
//	go run ./hack/bench profile      profiles of one case
//	go run ./hack/bench growth       the growth curves: tables, plots, verdicts
//	go run ./hack/bench markdown     a run as docs/performance.md quotes it
//	go run ./hack/bench garbage      what holding millions of orders does to the collector
//	go run ./hack/bench move         a partition that moves to other nodes under load
//	go run ./hack/bench idle         what partitions cost that nothing is asked of
//	go run ./hack/bench outage       how long no order is answered when a primary is killed
//	go run ./hack/bench query        questions about orders, beside what else answers them
//
// --help of each teaches. Exit status: 0 measured; 1 something failed; 2 usage;
// 3 the environment was too busy for a figure to count.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/ordergrid/ordergrid/hack/bench/acceptors"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitEnvironment = 3
)

var (
	errUsage       = errors.New("usage")
	errEnvironment = errors.New("some cases are INVALID: the machine was too busy; run them again when it is quiet")
)

func main() { os.Exit(start(os.Args[1:])) }

func start(args []string) int {
	if len(args) > 0 {
		if f := internal[args[0]]; f != nil {
			// A process of ours: it ends on a signal, or with its parent.
			return exitCode(f(args[1:], os.Stdin, os.Stdout))
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGPIPE) // a closed pipe: stop in order too
	defer stop()
	return exitCode(command(ctx, args, os.Stdout))
}

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errUsage):
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		return exitUsage
	case errors.Is(err, errEnvironment):
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		return exitEnvironment
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "bench: interrupted; everything that was started is stopped")
		return exitFailed
	}
	fmt.Fprintf(os.Stderr, "bench: %v\n", err)
	return exitFailed
}

func command(ctx context.Context, args []string, out io.Writer) error {
	name := "run"
	if len(args) > 0 && commands[args[0]] != nil {
		name, args = args[0], args[1:]
	}
	return commands[name](ctx, args, out)
}

// commands for people.
var commands = map[string]func(context.Context, []string, io.Writer) error{
	"run": runCommand, "list": listCommand, "compare": compareCommand, "profile": profileCommand, "markdown": markdownCommand, "growth": growthCommand, "garbage": garbageCommand, "move": moveCommand, "idle": idleCommand, "outage": outageCommand, "query": queryCommand, "help": helpCommand,
}

// internal commands are the processes that the others start.
var internal = map[string]func([]string, io.Reader, io.Writer) error{"relay": relayProcess, "generate": generateProcess, "acceptor": acceptors.Main}
