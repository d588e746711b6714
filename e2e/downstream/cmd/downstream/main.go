// Command downstream starts what sinks write to on this machine, prints the addresses, and stops it when it is
// interrupted. Data is in a directory that is removed then.
//
//	downstream [PART...]
//	downstream consume ADDRESS TOPIC    prints the records of a topic of Kafka that are committed
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/ordergrid/ordergrid/e2e/downstream"
)

// part is a system: start returns what to print, and how to stop it.
type part struct {
	name  string
	start func(ctx context.Context, dir string) (about string, stop func(), err error)
}

// parts has a line for each system.
var parts = []part{
	{"kafka", startKafka},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	args, command := os.Args[1:], run
	if len(args) == 3 && args[0] == "consume" {
		args, command = args[1:], consume
	}
	err := command(ctx, args)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "downstream:", err)
		os.Exit(1)
	}
}

// run starts the named parts, all without names, and waits for the end of ctx.
func run(ctx context.Context, names []string) error {
	chosen, err := choose(names)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ordergrid-downstream-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // below the directory of temporary files
	for _, p := range chosen {
		own := dir + "/" + p.name
		if err := os.Mkdir(own, 0o755); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "starting %s\n", p.name)
		about, stop, err := p.start(ctx, own)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		defer stop()
		fmt.Print(about)
	}
	fmt.Println("\nCtrl-C stops them and removes their data.")
	<-ctx.Done()
	return nil
}

func choose(names []string) (chosen []part, err error) {
	if len(names) == 0 {
		return parts, nil
	}
	for _, name := range names {
		found := false
		for _, p := range parts {
			if p.name == name {
				chosen, found = append(chosen, p), true
			}
		}
		if !found {
			return nil, fmt.Errorf("argument %.40q, allowed: names of parts, %s", name, known())
		}
	}
	return chosen, nil
}

func known() (text string) {
	for i, p := range parts {
		if i > 0 {
			text += ", "
		}
		text += p.name
	}
	return text
}

func startKafka(ctx context.Context, dir string) (about string, stop func(), err error) {
	k, err := downstream.StartKafka(ctx, dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf(`
kafka            %s
  with SASL      %s  user %s, password %s, by PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512
  with TLS       %s  --kafka-ca %s
  to read it     go run ./e2e/downstream/cmd/downstream consume %s TOPIC
`, k.Address, k.SASLAddress, k.User, k.Password, k.TLSAddress, k.CA, k.Address), k.Stop, nil
}
