package kafka_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/sink"
)

// BenchmarkCatchUp is how fast a backlog goes from the log of a grid to Kafka, with grid, sink and broker on one
// machine.
//
//	go test ./gateway/sink/kafka -run '^$' -bench CatchUp -benchtime 1x
func BenchmarkCatchUp(b *testing.B) {
	k := broker(b)
	g := testgrid.Run(b, "--external-sink", "kafka")
	c, err := client.Dial(b.Context(), client.Config{Endpoints: g.Endpoints, Grid: "dev", DialTimeout: time.Minute, RequestTimeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	const backlog = 400_000
	var answers sync.WaitGroup
	room := make(chan struct{}, 512)
	for i := range backlog {
		room <- struct{}{}
		answers.Add(1)
		err := c.SubmitAsync(testgrid.Order(fmt.Sprintf("CATCH-%d", i), 305), func(_ client.Receipt, err error) {
			if err != nil {
				b.Error(err)
			}
			<-room
			answers.Done()
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	answers.Wait()
	cfg := config(k, "catchup")
	cfg.Partitions, cfg.Topic = len(c.Table()), fmt.Sprintf("catchup-%d.orders", time.Now().UnixNano())
	r, err := sink.New(sink.Config{Client: c, Target: target(b, cfg), Grid: "dev", Sink: "kafka"})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	all.Go(func() { r.Run(ctx) })
	sum := func() (orders, batches uint64) {
		for _, p := range r.Status().Partitions {
			if p.Error != nil {
				b.Fatal(p.Error.Text)
			}
			orders, batches = orders+p.Orders, batches+p.Batches
		}
		return orders, batches
	}
	begun, before := time.Time{}, uint64(0)
	for orders := uint64(0); orders < backlog; time.Sleep(time.Millisecond) {
		if orders, _ = sum(); begun.IsZero() && orders > 0 { // topics are there, transactions have begun
			begun, before = time.Now(), orders
		}
	}
	seconds := time.Since(begun).Seconds()
	_, batches := sum()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(backlog-before)/seconds, "orders/s")
	b.ReportMetric(float64(backlog)/float64(batches), "orders/batch")
	cancel()
	all.Wait()
}
