package node

import (
	"cmp"
	"slices"
)

// A node sends at most Config.LearnerRate to replicas that catch up with it. Those that do
// so at the moment share it, and a partition that feeds none gives none of it away: it has
// the part that all of the node's partitions would have until it is seen to feed one, at
// the next tick at the latest. A record may allow its partition less, while it only moves;
// what that leaves is for the others. Feeds come and go seldom: nothing of this is asked
// when an order comes.

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

// allowed is what the record lets a learner of the partition be sent, bytes a second.
func (p *partition) allowed() int64 {
	if p.record.rate == 0 {
		return maxLearnerRate
	}
	return max(1, p.record.rate/int64(max(1, p.feeds)))
}

// feed gives a learner of the partition its rate and the part of one of so many learners of
// what may be on its way to them. All are kept to half of what a bulk connection takes, and
// get no more at once: others may begin before less is under way.
func (p *partition) feed(rate int64, learners int) {
	l := &p.limits
	l.LearnerRate = int(rate)
	l.LearnerBytes = min(4<<20, max(1, learnerBytes/2/learners))
	l.LearnerBatch = min(64<<10, l.LearnerBytes)
}
