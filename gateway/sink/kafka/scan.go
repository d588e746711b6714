package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordergrid/ordergrid/gateway/sink"
)

const (
	settleTries = 20
	settlePause = 250 * time.Millisecond
)

// settled returns the offsets of a partition that a consumer with read_committed can reach, when nothing behind them is
// undecided. Fencing has ended the transaction of the writer before, so what stays open belongs to no writer: brokers
// can forget the end of a transaction, and the next one's would then decide over it too.
func (w *writer) settled(ctx context.Context, x place) (start, end int64, err error) {
	var last int64
	for range settleTries {
		if start, end, last, err = w.bounds(ctx, x); err != nil || end == last {
			return start, end, err
		}
		select {
		case <-time.After(settlePause):
		case <-ctx.Done():
			return start, end, ctx.Err()
		}
	}
	return start, end, &sink.PermanentError{
		What:   fmt.Sprintf("topic %s, partition %d has an unfinished transaction from offset %d on, which no writer of this sink has", x.topic, x.partition, end),
		Remedy: "end another producer that writes there; if there is none it is left over from a failure of brokers: abort it (kafka-transactions.sh abort), in both topics of the sink",
	}
}

// bounds are the offsets of a partition: first, last that a consumer with read_committed can reach, and last of all.
func (w *writer) bounds(ctx context.Context, x place) (start, end, last int64, err error) {
	adm := kadm.NewClient(w.cl)
	of := func(list func(context.Context, ...string) (kadm.ListedOffsets, error)) int64 {
		if err != nil {
			return 0
		}
		all, e := list(ctx, x.topic)
		o, found := all.Lookup(x.topic, x.partition)
		switch {
		case e != nil:
			err = e
		case !found:
			err = kerr.UnknownTopicOrPartition
		default:
			err = o.Err
		}
		return o.Offset
	}
	start, end, last = of(adm.ListStartOffsets), of(adm.ListCommittedOffsets), of(adm.ListEndOffsets)
	if err != nil {
		err = fmt.Errorf("offsets of topic %s, partition %d: %w", x.topic, x.partition, err)
	}
	return start, end, last, err
}

// lastCommitted returns the last record of a committed transaction in start..end, nil if there is none. What is last in
// the log is a transaction's marker, or of a transaction that was aborted, so it looks back further and further.
func (w *writer) lastCommitted(ctx context.Context, x place, start, end int64) (*kgo.Record, error) {
	for back := int64(4); ; back *= 16 {
		from := max(start, end-back)
		r, err := w.scan(ctx, x, from, end)
		if r != nil || err != nil || from == start {
			return r, err
		}
	}
}

// scan reads from..end and returns the last record of a committed transaction. It fetches itself: a consumer does not
// tell when it has passed markers and what was aborted.
func (w *writer) scan(ctx context.Context, x place, from, end int64) (last *kgo.Record, err error) {
	for from < end {
		req := kmsg.NewPtrFetchRequest()
		req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.IsolationLevel = 500, 1, 8<<20, 1
		part := kmsg.NewFetchRequestTopicPartition()
		part.Partition, part.FetchOffset, part.PartitionMaxBytes = x.partition, from, 8<<20
		topic := kmsg.NewFetchRequestTopic()
		topic.Topic, topic.TopicID, topic.Partitions = x.topic, x.id, []kmsg.FetchRequestTopicPartition{part}
		req.Topics = []kmsg.FetchRequestTopic{topic}
		answer, err := w.cl.Broker(int(x.leader)).RetriableRequest(ctx, req)
		if err != nil {
			return nil, fmt.Errorf("read topic %s, partition %d at offset %d: %w", x.topic, x.partition, from, err)
		}
		resp := answer.(*kmsg.FetchResponse)
		if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
			return nil, fmt.Errorf("read topic %s: %w", x.topic, err)
		}
		if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
			return nil, fmt.Errorf("read topic %s: the answer has %d topics, allowed: 1 with 1 partition", x.topic, len(resp.Topics))
		}
		fetched, next := kgo.ProcessFetchPartition(kgo.ProcessFetchPartitionOpts{Offset: from, IsolationLevel: kgo.ReadCommitted(), Topic: x.topic, Partition: x.partition},
			&resp.Topics[0].Partitions[0], kgo.DefaultDecompressor(), nil)
		if fetched.Err != nil {
			return nil, fmt.Errorf("read topic %s, partition %d at offset %d: %w", x.topic, x.partition, from, fetched.Err)
		}
		for _, r := range fetched.Records {
			if r.Offset < end {
				last = r
			}
		}
		if next <= from && len(resp.Topics[0].Partitions[0].RecordBatches) == 0 { // nothing there yet, though the end was said to be behind it
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			continue
		}
		from = max(next, from+1)
	}
	return last, nil
}
