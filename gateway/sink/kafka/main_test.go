package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/artifact"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/gateway/sink/kafka"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// These tests run against a real broker, which they share: each has a grid's name, and so topics, of its own.

var shared struct {
	sync.Mutex
	k   *downstream.Kafka
	err error
	dir string
}

func TestMain(m *testing.M) {
	if os.Getenv(writerEnv) != "" {
		writeUntilKilled()
	}
	code := m.Run()
	if shared.k != nil {
		shared.k.Stop()
	}
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
	}
	os.Exit(code)
}

func broker(t testing.TB) *downstream.Kafka {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.k == nil && shared.err == nil {
		if shared.dir, shared.err = os.MkdirTemp("", "ordergrid-kafka-"); shared.err == nil {
			shared.k, shared.err = downstream.StartKafka(context.Background(), shared.dir)
		}
	}
	if errors.Is(shared.err, artifact.ErrUnavailable) && os.Getenv("ORDERGRID_REQUIRE_KAFKA") == "" {
		t.Skip(shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.k
}

func config(k *downstream.Kafka, grid string) kafka.Config {
	return kafka.Config{Brokers: []string{k.Address}, Grid: grid, Sink: "kafka", Partitions: 1, Topic: "{grid}.orders", CreateTopics: true, ReplicationFactor: 1}
}

func target(t testing.TB, cfg kafka.Config) *kafka.Target {
	t.Helper()
	x, err := kafka.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// open retries, as a sink does: a broker may not serve a topic yet that was made just now.
func open(t testing.TB, x *kafka.Target) sink.Writer {
	t.Helper()
	w, err := tryOpen(t, x)
	for end := time.Now().Add(30 * time.Second); errors.Is(err, kerr.UnknownTopicOrPartition) && time.Now().Before(end); w, err = tryOpen(t, x) {
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func tryOpen(t testing.TB, x *kafka.Target) (sink.Writer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return x.Open(ctx, 0)
}

// makeLog is a chained log of noop, orders, and after each seven orders an entry that is none.
type makeLog struct {
	seq, hash uint64
}

func (l *makeLog) after(p client.Position) { l.seq, l.hash = p.Seq, p.Hash }

// batch returns the next n entries. An order's ClOrdID names its place in the log.
func (l *makeLog) batch(n int) *sink.Batch {
	b := &sink.Batch{From: l.seq + 1}
	for range n {
		l.seq++
		e := order.Entry{Kind: order.KindOrder, Seq: l.seq, PrevHash: l.hash, Epoch: 3, TimeNs: time.Now().UnixNano()}
		fix := testgrid.Order(fmt.Sprintf("ID-%d", l.seq), 305)
		if l.seq%8 == 1 {
			e.Kind, fix = order.KindNoop, make([]byte, 16)
		} else {
			var o order.Order
			if err := order.Parse(fix, &o); err != nil {
				panic(err)
			}
			e.Fields = o.Fields
			b.Orders++
		}
		e.Size = uint32(order.HeaderSize + len(fix))
		bytes := make([]byte, order.HeaderSize, e.Size)
		e.Put(bytes)
		bytes = append(bytes, fix...)
		l.hash = order.Hash(bytes)
		b.Entries = append(b.Entries, client.LogEntry{Entry: e, Bytes: bytes})
		b.Bytes += len(bytes)
	}
	b.Through = client.Position{Seq: l.seq, Hash: l.hash, Lineage: 2}
	return b
}

// committed reads the partition of a topic as a consumer with read_committed does, up to its present end.
func committed(t testing.TB, k *downstream.Kafka, topic string, partition int32) []*kgo.Record {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(k.Address), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	end := stableEnd(ctx, t, cl, topic, partition)
	var all []*kgo.Record
	for next := int64(0); next < end; { // the last of all is always a marker
		f := cl.PollFetches(ctx)
		if err := f.Err(); err != nil {
			t.Fatalf("topic %s: %v; %d records, next offset %d of %d", topic, err, len(all), next, end)
		}
		f.EachRecord(func(r *kgo.Record) {
			next = r.Offset + 1
			if !r.Attrs.IsControl() {
				all = append(all, r)
			}
		})
	}
	return all
}

// stableEnd is the offset behind what is committed. A broker answers a commit before it has written the markers, so a
// transaction that still is open is waited for, for a while: one that a test left open stays so.
func stableEnd(ctx context.Context, t testing.TB, cl *kgo.Client, topic string, partition int32) int64 {
	t.Helper()
	adm := kadm.NewClient(cl)
	for try := 0; ; try++ {
		stable, err := adm.ListCommittedOffsets(ctx, topic)
		if err != nil {
			t.Fatal(err)
		}
		all, err := adm.ListEndOffsets(ctx, topic)
		if err != nil {
			t.Fatal(err)
		}
		end, _ := stable.Lookup(topic, partition)
		if last, _ := all.Lookup(topic, partition); end.Offset == last.Offset || try == 50 {
			return end.Offset
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// checkChain checks that the orders of a partition are there once and in order, by their headers alone, as a consumer
// would.
func checkChain(t testing.TB, all []*kgo.Record) {
	t.Helper()
	prev := "0"
	for _, r := range all {
		if header(r, kafka.HeaderPrev) != prev {
			t.Fatalf("offset %d: seq %s has prev %s, and the record before is %s", r.Offset, header(r, kafka.HeaderSeq), header(r, kafka.HeaderPrev), prev)
		}
		prev = header(r, kafka.HeaderSeq)
	}
}

// checkLog checks that orders 1..through of makeLog are there.
func checkLog(t testing.TB, all []*kgo.Record, through uint64) {
	t.Helper()
	checkChain(t, all)
	i := 0
	for seq := uint64(1); seq <= through; seq++ {
		if seq%8 == 1 {
			continue
		}
		if i >= len(all) || string(all[i].Key) != fmt.Sprintf("ID-%d", seq) || header(all[i], kafka.HeaderSeq) != fmt.Sprint(seq) {
			t.Fatalf("record %d of %d is not order %d", i, len(all), seq)
		}
		i++
	}
	if i != len(all) {
		t.Fatalf("%d records, want %d", len(all), i)
	}
}
