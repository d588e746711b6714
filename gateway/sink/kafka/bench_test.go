package kafka_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/gateway/sink/kafka"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// BenchmarkSink compares the writer with a bare transactional producer of the same client, in turns on one broker: the
// same orders as key and value, in transactions of the same size, without headers, position and encoding. The ratio is
// the median over the rounds (-benchtime is not used; ORDERGRID_BENCH_ROUNDS, 9 by default).
//
//	go test ./gateway/sink/kafka -run '^$' -bench Sink -benchtime 1x
func BenchmarkSink(b *testing.B) {
	rounds := 9
	if s := os.Getenv("ORDERGRID_BENCH_ROUNDS"); s != "" {
		rounds, _ = strconv.Atoi(s)
	}
	for _, format := range []string{"fix", "json", "protobuf"} {
		for _, size := range []int{1000, 4000, 16384} {
			if format != "fix" && size != 16384 {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d", format, size), func(b *testing.B) { benchmark(b, format, size, rounds) })
		}
	}
}

// roundOrders are written in a round by each of the two.
const roundOrders = 64 << 10

func benchmark(b *testing.B, format string, size, rounds int) {
	k := broker(b)
	cfg := config(k, fmt.Sprintf("bench-%s-%d-%d", format, size, time.Now().UnixNano()))
	var err error
	if cfg.Format, err = kafka.ParseFormat(format); err != nil {
		b.Fatal(err)
	}
	w := open(b, target(b, cfg))
	bare := newBare(b, k.Address, fmt.Sprintf("bare-%s-%d-%d", format, size, time.Now().UnixNano()))
	var l makeLog
	batch := l.batch(size)
	var ours, theirs, ratios []float64
	for range rounds {
		count := 0
		begun := time.Now()
		for ; count < roundOrders; count += batch.Orders {
			if err := w.Write(context.Background(), batch); err != nil {
				b.Fatal(err)
			}
		}
		own := float64(count) / time.Since(begun).Seconds()
		begun = time.Now()
		for n := 0; n < count; n += batch.Orders {
			bare.write(b, batch)
		}
		other := float64(count) / time.Since(begun).Seconds()
		ours, theirs, ratios = append(ours, own), append(theirs, other), append(ratios, own/other)
	}
	for _, x := range [][]float64{ours, theirs, ratios} {
		slices.Sort(x)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ours[rounds/2], "orders/s")
	b.ReportMetric(theirs[rounds/2], "bare/s")
	b.ReportMetric(ratios[rounds/2], "ratio")
	b.ReportMetric(ratios[0], "ratio-min")
	b.ReportMetric(ratios[rounds-1], "ratio-max")
}

// bare is what the client alone does.
type bare struct {
	cl      *kgo.Client
	topic   string
	records []kgo.Record
}

func newBare(b *testing.B, address, topic string) *bare {
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.TransactionalID(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.SnappyCompression()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(cl.Close)
	if _, err := kadm.NewClient(cl).CreateTopic(context.Background(), 1, 1, nil, topic); err != nil {
		b.Fatal(err)
	}
	return &bare{cl: cl, topic: topic}
}

func (x *bare) write(b *testing.B, batch *sink.Batch) {
	if err := x.cl.BeginTransaction(); err != nil {
		b.Fatal(err)
	}
	if cap(x.records) < batch.Orders {
		x.records = make([]kgo.Record, 0, batch.Orders)
	}
	x.records = x.records[:0]
	for i := range batch.Entries {
		if e := &batch.Entries[i]; e.Kind == order.KindOrder {
			x.records = append(x.records, kgo.Record{Topic: x.topic, Key: order.ClOrdID(e.Bytes), Value: order.Payload(e.Bytes)})
			x.cl.Produce(context.Background(), &x.records[len(x.records)-1], nil)
		}
	}
	if err := x.cl.Flush(context.Background()); err != nil {
		b.Fatal(err)
	}
	if err := x.cl.EndTransaction(context.Background(), kgo.TryCommit); err != nil {
		b.Fatal(err)
	}
}
