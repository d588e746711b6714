package node

import (
	"cmp"
	"slices"
)

// A node sends at most Config.LearnerRate to its learners. Active feeds share it, and a
// partition without a feed keeps only the equal part among all of the node's partitions,
// until it is seen to feed, at the next tick at the latest. A record may allow its
// partition less; the rest is for the others. Feeds change rarely: orders do not pay for
// this.

// shareFeeds sets LearnerBytes, LearnerRate and LearnerBatch of every partition's limits,
// which are of one learner.
func (ps *partitions) shareFeeds() {
	var feeding []*partition
	learners := 0
	for _, p := range ps.list {
		if p.feeds = 0; p.replica != nil {
			p.feeds = p.replica.Feeds()
		}
		if learners += p.feeds; p.feeds > 0 {
			feeding = append(feeding, p)
			continue
		}
		p.feed(min(max(1, ps.cfg.LearnerRate/int64(len(ps.list))), p.allowed()), len(ps.list))
	}
	slices.SortStableFunc(feeding, func(x, y *partition) int { return cmp.Compare(x.allowed(), y.allowed()) })
	rate, left := ps.cfg.LearnerRate, learners
	for _, p := range feeding {
		each := min(max(1, rate/int64(left)), p.allowed())
		p.feed(each, learners)
		rate, left = rate-each*int64(p.feeds), left-p.feeds
	}
}

// allowed returns the rate that the record allows a learner of the partition, bytes per
// second.
func (p *partition) allowed() int64 {
	if p.record.rate == 0 {
		return maxLearnerRate
	}
	return max(1, p.record.rate/int64(max(1, p.feeds)))
}

// feed gives a learner of the partition its rate and its share of the bytes in flight. All
// stay within half of the limit of a bulk connection, and get no more at once: others may
// begin before less is in flight.
func (p *partition) feed(rate int64, learners int) {
	l := &p.limits
	l.LearnerRate = int(rate)
	l.LearnerBytes = min(4<<20, max(1, learnerBytes/2/learners))
	l.LearnerBatch = min(64<<10, l.LearnerBytes)
}
