// Package load sends one probe's orders to the grid: a creator that always keeps to the schedule,
// and publishing threads that each take the next created order, submit it and wait for its
// acknowledgement.
//
//	schedule ──► creator ──(T1)──► created orders ──► publishing thread ──(T2)──► grid ──(T3)
//
// Creation never waits for publishing: the record of every order of a step is allocated before the
// step begins, so the queue between the two cannot overflow. When the grid stalls, created orders
// queue up, and create-to-end latency (T3-T1) includes the wait; send-to-end (T3-T2) does not, and
// intended-to-end (T3-intended) also includes the creator's own lateness.
//
// During a step nothing is counted or put into a histogram: threads write timestamps into their
// order's record, and statistics are computed afterwards. A reader of complete records
// (Order.Complete) may follow the step meanwhile.
package load
