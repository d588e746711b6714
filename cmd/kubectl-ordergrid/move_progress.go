package main

import (
	"fmt"
	"slices"
	"time"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// moveProgress is the progress of a partition's move to another shard.
type moveProgress struct {
	// Percent of its bytes that the new copies have, 0 to 99; absent where a node was not reached.
	Percent *int `json:"percent,omitempty"`
	// SecondsLeft at the rate so far; absent while there is none.
	SecondsLeft *float64 `json:"secondsLeft,omitempty"`
}

// progressOf is the progress of a partition's move, nil if it does not move. moves are those of status, with their
// start.
func progressOf(p *api.GridPartition, answers map[string]answer, moves []api.PartitionMove, now time.Time) *moveProgress {
	if len(comesFrom(p)) == 0 {
		return nil
	}
	m := &moveProgress{}
	total := bytesOf(p, answers)
	have, pods := 0.0, shardPods(p)
	for _, pod := range pods {
		node := answers[pod].node
		switch {
		case slices.Contains(inSyncPods(p), pod):
			have++
		case node == nil || total == nil:
			return m
		case node.Find(p.Name) != nil && *total > 0:
			have += min(1, max(0, float64(node.Find(p.Name).Bytes)/float64(*total)))
		}
	}
	done := have / float64(len(pods))
	m.Percent = new(min(99, int(100*done))) // the hand-over and the removal of the old copies are left
	i := slices.IndexFunc(moves, func(m api.PartitionMove) bool { return m.Partition == p.Spec.Partition && m.To == p.Spec.Shard })
	if i >= 0 && moves[i].StartTime != nil && *m.Percent > 0 {
		m.SecondsLeft = new(max(0, now.Sub(moves[i].StartTime.Time).Seconds()*(1-done)/done))
	}
	return m
}

func (m *moveProgress) percent() string {
	switch {
	case m == nil:
		return "-"
	case m.Percent == nil:
		return "?"
	}
	return fmt.Sprintf("%d%%", *m.Percent)
}

func (m *moveProgress) left() string {
	if m == nil {
		return "-"
	}
	return secondsText(m.SecondsLeft)
}
