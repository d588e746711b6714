package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/gateway/sink/kafka"
	"github.com/ordergrid/ordergrid/internal/command"
)

type kafkaFlags struct {
	brokers           []string
	topic, executions string
	key, format       string
	compression       string
	only, create      bool
	replication       int16
	sasl              kafka.Credentials
	tls               kafka.TLSFiles
}

// ordersTopic is the default of --topic.
const ordersTopic = "{grid}.orders"

func kafkaCommand() *cobra.Command {
	var f kafkaFlags
	return targetCommand("kafka", "Write orders to Kafka, in transactions",
		`Writes the orders of a grid to a topic of Kafka: each once, in the order of its partition's
log, for consumers with isolation.level=read_committed. The position is written in the same
transaction, to the topic's name with .positions behind it.

With --executions-topic what the orders did goes to a topic of its own; with --only-executions
besides, orders are not written.

Partition i of the grid is partition i of the topic. With {partition} in --topic, each
partition has a topic of its own with one partition.`,
		usualBatches, f.add, f.open, func() bool { return f.executions != "" })
}

func (f *kafkaFlags) add(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.brokers, "broker", []string{"127.0.0.1:9092"}, "host:port of any broker; several separated by commas")
	fl.StringVar(&f.topic, "topic", ordersTopic, "topic; {grid} and {partition} are replaced")
	fl.StringVar(&f.executions, "executions-topic", "", "topic of executions too, of a grid that matches, such as {grid}.executions, in the same transactions; as JSON with --format fix. Default: they are not written")
	fl.BoolVar(&f.only, "only-executions", false, "with --executions-topic: write executions and no orders. The position is in the topic of executions' name with .positions behind it")
	fl.StringVar(&f.key, "key", "ClOrdID", "key of the records: ClOrdID or Symbol")
	fl.StringVar(&f.format, "format", "fix", "value of the records: fix (the message byte for byte), json, or protobuf (gateway/sink/kafka/order.proto)")
	fl.StringVar(&f.compression, "compression", "snappy", "none, gzip, snappy, lz4 or zstd")
	fl.BoolVar(&f.create, "create-topics", true, "create topics that do not exist")
	fl.Int16Var(&f.replication, "replication-factor", -1, "copies of topics that are created; -1 for the broker's default")
	fl.StringVar(&f.sasl.Mechanism, "sasl-mechanism", "", "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; default none")
	fl.StringVar(&f.sasl.UserFile, "sasl-user-file", "", "file with the user, read anew for each connection")
	fl.StringVar(&f.sasl.PasswordFile, "sasl-password-file", "", "file with the password, read anew for each connection")
	fl.StringVar(&f.tls.CA, "kafka-ca", "", "PEM file of the authorities that must have signed the brokers' certificates; with it TLS is used")
	fl.BoolVar(&f.tls.System, "kafka-system-ca", false, "use TLS with the authorities of this machine")
	fl.StringVar(&f.tls.Cert, "kafka-cert", "", "PEM file of the certificate to present to brokers")
	fl.StringVar(&f.tls.Key, "kafka-key", "", "PEM file of its private key")
	fl.StringVar(&f.tls.Name, "kafka-tls-name", "", "name in the brokers' certificates; default: the host that is dialled")
}

func (f *kafkaFlags) open(_ context.Context, of source) (sink.Target, error) {
	switch {
	case f.only && f.executions == "":
		return nil, command.BadUsage(errors.New(`--executions-topic: value "", allowed: a topic, with --only-executions`))
	case f.only && f.topic != ordersTopic:
		return nil, command.BadUsage(fmt.Errorf("--topic: value %.80q, allowed: none with --only-executions", f.topic))
	case f.only:
		f.topic = ""
	}
	cfg := kafka.Config{
		Brokers: f.brokers, Grid: of.Grid, Sink: of.Sink, Partitions: of.Partitions, Topic: f.topic, ExecutionsTopic: f.executions, Compression: f.compression,
		CreateTopics: f.create, ReplicationFactor: f.replication, Logger: of.Log,
	}
	var err error
	if cfg.Key, err = kafka.ParseKey(f.key); err != nil {
		return nil, command.BadUsage(fmt.Errorf("--key: %w", err))
	}
	if cfg.Format, err = kafka.ParseFormat(f.format); err != nil {
		return nil, command.BadUsage(fmt.Errorf("--format: %w", err))
	}
	if cfg.SASL, err = f.sasl.SASL(); err != nil {
		return nil, command.BadUsage(fmt.Errorf("--sasl-mechanism, --sasl-user-file, --sasl-password-file: %w", err))
	}
	if cfg.TLS, err = f.tls.Config(); err != nil {
		return nil, command.BadUsage(fmt.Errorf("--kafka-ca, --kafka-cert, --kafka-key: %w", err))
	}
	t, err := kafka.New(cfg)
	if err != nil {
		return nil, command.BadUsage(err)
	}
	return t, nil
}
