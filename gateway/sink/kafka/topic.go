package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

const (
	markGrid      = "{grid}"
	markPartition = "{partition}"
	// positionsSuffix is what the topic of positions has behind the name of the topic of orders.
	positionsSuffix = ".positions"
	maxTopic        = 249
)

// checkTemplate reports what is wrong with a template of topics.
func checkTemplate(template, grid string) error {
	const allowed = "allowed: letters, digits, '.', '_' and '-', with {grid} and {partition} as placeholders, 1 to 249 characters with .positions"
	name := expand(template, grid, 1<<16-1)
	if template == "" || len(name)+len(positionsSuffix) > maxTopic {
		return fmt.Errorf("topic is %.80q; %s", template, allowed)
	}
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return fmt.Errorf("topic is %.80q, with the character %q; %s", template, c, allowed)
		}
	}
	return nil
}

func expand(template, grid string, p wire.PartitionID) string {
	return strings.NewReplacer(markGrid, grid, markPartition, p.String()).Replace(template)
}

// place is a partition of a topic.
type place struct {
	topic     string
	partition int32
	id        kadm.TopicID
	leader    int32
}

// places returns the names for a partition of the grid, and how many partitions each topic has.
func (t *Target) places(p wire.PartitionID) (orders, positions place, count int) {
	orders = place{topic: expand(t.cfg.Topic, t.cfg.Grid, p), partition: int32(p)}
	count = t.cfg.Partitions
	if strings.Contains(t.cfg.Topic, markPartition) {
		orders.partition, count = 0, 1
	}
	positions = orders
	positions.topic += positionsSuffix
	return orders, positions, count
}

// topics finds both topics of a partition, or creates them.
func (t *Target) topics(ctx context.Context, cl *kgo.Client, p wire.PartitionID) (orders, positions place, err error) {
	orders, positions, count := t.places(p)
	adm := kadm.NewClient(cl)
	details, err := adm.ListTopics(ctx, orders.topic, positions.topic)
	if err != nil {
		return orders, positions, fmt.Errorf("metadata: %w", err)
	}
	created := false
	for _, x := range []struct {
		name   string
		config map[string]*string
	}{{orders.topic, nil}, {positions.topic, map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}}} {
		if !errors.Is(details[x.name].Err, kerr.UnknownTopicOrPartition) {
			continue
		}
		if err := t.create(ctx, adm, x.name, count, x.config); err != nil {
			return orders, positions, err
		}
		created = true
	}
	if created {
		if details, err = known(ctx, adm, orders.topic, positions.topic); err != nil {
			return orders, positions, err
		}
	}
	for _, x := range []*place{&orders, &positions} {
		if err := x.find(details[x.topic], count); err != nil {
			return orders, positions, err
		}
	}
	return orders, positions, nil
}

// known waits until brokers know topics that were just created, and who leads them.
func known(ctx context.Context, adm *kadm.Client, topics ...string) (kadm.TopicDetails, error) {
	for range 100 {
		details, err := adm.ListTopics(ctx, topics...)
		if err != nil {
			return nil, fmt.Errorf("metadata: %w", err)
		}
		complete := details.Error() == nil
		details.EachPartition(func(p kadm.PartitionDetail) { complete = complete && p.Leader >= 0 })
		if complete {
			return details, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, fmt.Errorf("topics %s were created, and have no leader yet", strings.Join(topics, ", "))
}

func (t *Target) create(ctx context.Context, adm *kadm.Client, name string, count int, config map[string]*string) error {
	if !t.cfg.CreateTopics {
		return &sink.PermanentError{What: fmt.Sprintf("topic %s does not exist", name), Remedy: fmt.Sprintf("create it with %d partitions, or allow it with --create-topics", count)}
	}
	_, err := adm.CreateTopic(ctx, int32(count), t.cfg.ReplicationFactor, config, name)
	switch {
	case err == nil:
		t.cfg.Logger.Info("topic created", "topic", name, "partitions", count, "replicationFactor", t.cfg.ReplicationFactor)
	case errors.Is(err, kerr.TopicAlreadyExists): // by the writer of another partition
	case errors.Is(err, kerr.InvalidReplicationFactor):
		return &sink.PermanentError{What: fmt.Sprintf("topic %s with replication factor %d", name, t.cfg.ReplicationFactor), Remedy: "allowed: at most the number of brokers (--replication-factor)", Err: err}
	default:
		return fmt.Errorf("create topic %s: %w", name, err)
	}
	return nil
}

// find takes id and leader of a topic that has to have count partitions.
func (x *place) find(d kadm.TopicDetail, count int) error {
	switch {
	case d.Err != nil:
		return fmt.Errorf("topic %s: %w", x.topic, d.Err)
	case len(d.Partitions) != count:
		return &sink.PermanentError{
			What:   fmt.Sprintf("topic %s has %d partitions, allowed: %d", x.topic, len(d.Partitions), count),
			Remedy: "a partition of the grid is written to the one of its number; name another topic, or delete this one with its positions",
		}
	}
	part := d.Partitions[x.partition]
	if part.Err != nil && !errors.Is(part.Err, kerr.ReplicaNotAvailable) {
		return fmt.Errorf("topic %s, partition %d: %w", x.topic, x.partition, part.Err)
	}
	x.id, x.leader = d.ID, part.Leader
	return nil
}
