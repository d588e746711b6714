package kafka

import (
	"cmp"
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

// checkTopics reports what is wrong with the templates of a configuration.
func (c *Config) checkTopics() error {
	if c.Topic != "" || c.ExecutionsTopic == "" {
		if err := checkTemplate(c.Topic, c.Grid); err != nil {
			return err
		}
	}
	if c.ExecutionsTopic == "" {
		return nil
	}
	if err := checkTemplate(c.ExecutionsTopic, c.Grid); err != nil {
		return fmt.Errorf("of executions: %w", err)
	}
	for _, name := range []string{c.Topic, c.Topic + positionsSuffix} {
		if c.Topic != "" && expand(c.ExecutionsTopic, c.Grid, 0) == expand(name, c.Grid, 0) {
			return fmt.Errorf("the topic of executions is %.80q, allowed: one of its own, not that of orders or of positions", c.ExecutionsTopic)
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

// place returns where a template has a partition of the grid, and how many partitions the topic has.
func (t *Target) place(template string, p wire.PartitionID) (x place, count int) {
	x = place{topic: expand(template, t.cfg.Grid, p), partition: int32(p)}
	if strings.Contains(template, markPartition) {
		x.partition = 0
		return x, 1
	}
	return x, t.cfg.Partitions
}

// places are the topics of a partition of the grid.
type places struct {
	positions          place
	orders, executions *place // nil: they are not written
}

// first is the topic that the sink is named by, in errors, and its positions too.
func (at *places) first() *place { return cmp.Or(at.orders, at.executions) }

// contentOf is what a sink writes, with orders or without.
func contentOf(orders bool) string {
	if orders {
		return "orders"
	}
	return "executions alone"
}

// topics finds the topics of a partition, or creates them.
func (t *Target) topics(ctx context.Context, cl *kgo.Client, p wire.PartitionID) (at places, err error) {
	type wanted struct {
		*place
		count  int
		config map[string]*string
	}
	var all []wanted
	for _, x := range []struct {
		template string
		at       **place
	}{{t.cfg.Topic, &at.orders}, {t.cfg.ExecutionsTopic, &at.executions}} {
		if x.template != "" {
			where, count := t.place(x.template, p)
			*x.at = &where
			all = append(all, wanted{*x.at, count, nil})
		}
	}
	at.positions = *at.first()
	at.positions.topic += positionsSuffix
	all = append(all, wanted{&at.positions, all[0].count, map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}})
	names := make([]string, len(all))
	for i, x := range all {
		names[i] = x.topic
	}
	adm := kadm.NewClient(cl)
	details, err := adm.ListTopics(ctx, names...)
	if err != nil {
		return at, fmt.Errorf("metadata: %w", err)
	}
	created := false
	for _, x := range all {
		if !errors.Is(details[x.topic].Err, kerr.UnknownTopicOrPartition) {
			continue
		}
		if err := t.create(ctx, adm, x.topic, x.count, x.config); err != nil {
			return at, err
		}
		created = true
	}
	if created {
		if details, err = known(ctx, adm, names...); err != nil {
			return at, err
		}
	}
	for _, x := range all {
		if err := x.find(details[x.topic], x.count); err != nil {
			return at, err
		}
	}
	return at, nil
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
