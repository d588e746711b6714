package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/internal/command"
	"github.com/spf13/pflag"
)

// What is wrong on the command line is named, with what is allowed, before anything is connected.
func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"kafka":                                    `--grid: value "", allowed: a name; it is required`,
		"kafka --grid g":                           `--sink: value "", allowed: a name; it is required`,
		"kafka --grid g --sink Kafka":              `--sink: value "Kafka", allowed: 1 to 32 lowercase letters`,
		"kafka --grid g --sink k --partition x":    "--partition: ",
		"kafka --grid g --sink k --log-level loud": `--log-level: value "loud", allowed: debug, info, warn, error`,
		"kafka --grid g --sink k --log-format xml": `--log-format: value "xml", allowed: text, json`,
		"kafka --grid g --sink k --tls-cert x":     "--tls-key",
		"archive restore-point --grid g":           "--url, --grid and --owner: one is missing",
		"archive restore-point --grid g --url x --owner o --partitions 2 --partition 2": "--partition: value 2, allowed: 0 to 1",
		"kafka --nothing": "see grid-sink kafka --help",
		"kafka extra":     `argument "extra", allowed: flags only`,
	} {
		root := rootCommand()
		root.SetArgs(strings.Fields(args))
		root.SetOut(&bytes.Buffer{})
		root.SetErr(&bytes.Buffer{})
		err := root.ExecuteContext(t.Context())
		if command.ExitCode(err) != command.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("grid-sink %s: %v, want a usage error with %q", args, err, want)
		}
	}
}

// The flags of a target that are wrong are usage errors too.
func TestKafkaFlags(t *testing.T) {
	for flag, want := range map[string]string{
		"--key=Account":      "--key: key is \"Account\", allowed: ClOrdID, Symbol",
		"--format=xml":       "--format: format is \"xml\", allowed: fix, json, protobuf",
		"--broker=kafka":     "allowed: host:port",
		"--topic={shard}":    "topic is ",
		"--compression=best": "compression is ",
		"--sasl-mechanism=X": "--sasl-user-file",
		"--kafka-cert=x":     "--kafka-key",
		"--kafka-ca=main.go": "main.go has no certificate",
	} {
		var f kafkaFlags
		set := pflag.NewFlagSet("kafka", pflag.ContinueOnError)
		f.add(set)
		if err := set.Parse([]string{flag}); err != nil {
			t.Fatal(err)
		}
		_, err := f.open(t.Context(), source{Grid: "g", Sink: "k", Partitions: 1})
		if command.ExitCode(err) != command.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a usage error with %q", flag, err, want)
		}
	}
}
