// Package kafka writes the orders of a grid to Kafka, and what they did in one that matches, each exactly once for
// consumers with read_committed.
//
// A batch is a transaction: its orders in one topic, executions in another one, the position behind them in a third. A writer has the
// transactional id of its partition, so opening one fences the writer before, and the position is then read from the
// end of the positions topic (ADR 41).
//
// github.com/twmb/franz-go is the client: it is pure Go, has transactions with KIP-890, and of the clients measured it
// is the one that keeps up (docs/sinks.md).
package kafka

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"

	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Config of a Target.
type Config struct {
	Brokers []string // host:port
	// Grid and Sink are names: of the transactional ids, and of whom the topics belong to.
	Grid, Sink string
	Partitions int // of the grid
	// Topic is the template of the topic of orders; {grid} and {partition} are replaced. Empty: executions are written alone.
	Topic string
	// ExecutionsTopic is the template of the topic of executions, of a grid that matches; empty: they are not written.
	ExecutionsTopic string
	Key             Key
	Format          Format
	// Compression is none, gzip, snappy, lz4 or zstd; snappy when empty.
	Compression string
	// CreateTopics allows creating topics that do not exist, with ReplicationFactor copies, -1 for the broker's default.
	CreateTopics      bool
	ReplicationFactor int16
	TLS               *tls.Config    // nil: plain TCP
	SASL              sasl.Mechanism // nil: none
	Logger            *slog.Logger   // nil: nothing is logged
}

// transactionTimeout is after how long a broker aborts a transaction whose writer is gone. Consumers of the partition
// wait for it, unless another writer is opened.
const transactionTimeout = time.Minute

// Target is a Kafka cluster.
type Target struct {
	cfg  Config
	opts []kgo.Opt
	last *lastConnect
}

// New checks the configuration. Nothing is connected before Open.
func New(cfg Config) (*Target, error) {
	if len(cfg.Brokers) == 0 {
		return nil, fmt.Errorf("brokers: none, allowed: one host:port or more")
	}
	for _, b := range cfg.Brokers {
		if _, port, err := net.SplitHostPort(b); err != nil || port == "" {
			return nil, fmt.Errorf("broker is %.80q, allowed: host:port, for example kafka:9092", b)
		}
	}
	if cfg.Partitions < 1 {
		return nil, fmt.Errorf("partitions of the grid: %d, allowed: 1 or more", cfg.Partitions)
	}
	if err := cfg.checkTopics(); err != nil {
		return nil, err
	}
	codec, err := compression(cfg.Compression)
	if err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Target{cfg: cfg, last: &lastConnect{}}
	t.opts = []kgo.Opt{
		kgo.SeedBrokers(cfg.Brokers...), kgo.ClientID("ordergrid-" + cfg.Sink), kgo.WithLogger(logger{cfg.Logger}), kgo.WithHooks(t.last),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codec),
		kgo.TransactionTimeout(transactionTimeout), kgo.RecordDeliveryTimeout(transactionTimeout / 2), kgo.RetryTimeout(transactionTimeout / 4),
		kgo.MetadataMinAge(250 * time.Millisecond),
	}
	if cfg.TLS != nil {
		t.opts = append(t.opts, kgo.DialTLSConfig(cfg.TLS))
	}
	if cfg.SASL != nil {
		t.opts = append(t.opts, kgo.SASL(cfg.SASL))
	}
	return t, nil
}

func compression(name string) (kgo.CompressionCodec, error) {
	switch name {
	case "none":
		return kgo.NoCompression(), nil
	case "gzip":
		return kgo.GzipCompression(), nil
	case "snappy", "":
		return kgo.SnappyCompression(), nil
	case "lz4":
		return kgo.Lz4Compression(), nil
	case "zstd":
		return kgo.ZstdCompression(), nil
	}
	return kgo.CompressionCodec{}, fmt.Errorf("compression is %.40q, allowed: none, gzip, snappy, lz4, zstd", name)
}

// transactionalID names the writers of a partition: whichever has it last fences the others.
func (t *Target) transactionalID(p wire.PartitionID) string {
	return strings.Join([]string{"ordergrid", t.cfg.Grid, t.cfg.Sink, p.String()}, ".")
}

// Open fences the writer before, aborts its transaction, and only then reads where it was.
func (t *Target) Open(ctx context.Context, p wire.PartitionID) (sink.Writer, error) {
	if int(p) >= t.cfg.Partitions {
		return nil, fmt.Errorf("partition is %s, allowed: p0..p%d", p, t.cfg.Partitions-1)
	}
	id := t.transactionalID(p)
	cl, err := kgo.NewClient(append(t.opts[:len(t.opts):len(t.opts)], kgo.TransactionalID(id))...)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	w, err := t.open(ctx, cl, p, id)
	if err != nil {
		cl.Close()
		return nil, t.explain(err)
	}
	return w, nil
}

func (t *Target) open(ctx context.Context, cl *kgo.Client, p wire.PartitionID, id string) (*writer, error) {
	at, err := t.topics(ctx, cl, p)
	if err != nil {
		return nil, err
	}
	producer, epoch, err := cl.ProducerID(ctx)
	if err != nil {
		return nil, fmt.Errorf("transactional id %s: %w", id, err)
	}
	t.cfg.Logger.Debug("writers before are fenced", "transactionalID", id, "producerID", producer, "producerEpoch", epoch)
	w := &writer{t: t, cl: cl, p: p, places: at}
	return w, w.resume(ctx)
}

// Close ends nothing: each writer has its own connections.
func (t *Target) Close() error { return nil }

// lastConnect keeps why the last connection failed: a request that timed out does not say.
type lastConnect struct {
	mu  sync.Mutex
	err error
}

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (l *lastConnect) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	l.mu.Lock()
	l.err = err
	l.mu.Unlock()
}

func (l *lastConnect) get() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// logger hands what the client reports to slog. Its Info is about every transaction, so it is Debug here.
type logger struct{ log *slog.Logger }

func (l logger) Level() kgo.LogLevel {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		return kgo.LogLevelInfo
	}
	return kgo.LogLevelWarn
}

func (l logger) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	to := slog.LevelDebug
	if level <= kgo.LogLevelWarn {
		to = slog.LevelWarn
	}
	l.log.Log(context.Background(), to, "kafka client: "+msg, keyvals...)
}

var _ io.Closer = (*Target)(nil)
