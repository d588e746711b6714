package ordergrid

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// An order's id is its partition and its sequence number. A shard that is added to a grid that runs may have the number of
// one that was removed, so its partitions begin to count where no partition of that number can have come. Two things tell
// where, and the higher counts. The time: it needs no memory, so none can be lost, not with the records of the removed
// shard, not with status, not when etcd is restored from a backup that does not know of it. And where removed shards
// ended, as long as the grid's records last: that holds whatever clocks say.
const (
	// seqsPerSecond is how much the first number rises by in a second. A partition that counts slower than that, over all
	// of its life, never comes to where one begins that is made after it.
	seqsPerSecond = 1 << 20
	// maxFirstSeq is what the API server lets pass.
	maxFirstSeq = 1<<53 - 1
)

func firstSeqAt(now time.Time) int64 {
	return min(max(now.Unix(), 0), maxFirstSeq/seqsPerSecond-1)*seqsPerSecond + 1
}

// rememberLast is for a record that is given up for good: its last entry has this number.
func rememberLast(record *api.GridPartition, last uint64) {
	next := int64(min(last, maxFirstSeq-1)) + 1 // what a node says is a number of any size
	record.Spec.Layout.NextFirstSeq = max(record.Spec.Layout.NextFirstSeq, next)
}

// nextFirstSeq is what the records that stay remember of a shard that goes. An operator of the version before has not
// noted where it ended: then it is not beyond now.
func (s *scale) nextFirstSeq(removed int32) int64 {
	next, noted := int64(0), true
	for i := range s.retired {
		if p := &s.retired[i]; p.Spec.Shard == removed && p.Spec.Layout != nil {
			next = max(next, p.Spec.Layout.NextFirstSeq)
			noted = noted && p.Spec.Layout.NextFirstSeq > 0
		}
	}
	if !noted {
		next = max(next, firstSeqAt(s.now))
	}
	return next
}

// firstSeq is where a partition begins whose record is made now; 0 stands for 1. The shards that a grid begins with are
// those of its first layout.
func (s *scale) firstSeq(shard int32) int64 {
	if s.layout.Revision <= 1 && shard < s.layout.Shards {
		return 0
	}
	return max(firstSeqAt(s.now), s.layout.NextFirstSeq)
}

// keepFirstSeq gives a record the number that it was made with, or that it is made with now. The cache may not show yet
// that it is made.
func (r *run) keepFirstSeq(ctx context.Context, desired, record *api.GridPartition) error {
	if record == nil {
		if desired.Spec.FirstSeq = r.scale.firstSeq(desired.Spec.Shard); desired.Spec.FirstSeq == 0 {
			return nil
		}
		record = &api.GridPartition{}
		err := r.Live.Get(ctx, client.ObjectKeyFromObject(desired), record)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read GridPartition %s: %w", desired.Name, err)
		}
	}
	desired.Spec.FirstSeq = record.Spec.FirstSeq
	return nil
}
