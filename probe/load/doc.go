// Package load puts one probe's orders on the grid: a creator that keeps to
// the schedule whatever happens, and publishing threads that each take the
// next created order, submit it and wait for its acknowledgement.
//
//	schedule ──► creator ──(T1)──► created orders ──► publishing thread ──(T2)──► grid ──(T3)
//
// Creation never waits for publishing: the place of every order of a step is
// allocated before the step begins, so the queue between the two has no limit
// that could be met. When the grid stalls, created orders queue up, and
// create-to-end latency (T3-T1) shows what that costs; send-to-end (T3-T2)
// does not, and intended-to-end (T3-intended) also holds the creator's own
// lateness against the figures.
//
// During a step nothing is counted or put in a histogram: threads write
// timestamps into their order's record, and statistics are made afterwards. A
// reader of complete records (Order.Complete) may follow the step meanwhile.
package load
