// Package fixdoor sends a probe's orders through FIX sessions of an order-gateway: a Session is one publishing thread's
// load.Submitter, beside the grid's own (probe/grid).
//
// A session has at most one order without a report. When its connection ends it logs on again, at the next address, and
// the two numbers settle what became of the order: the gateway asks for it if the grid does not have it, and it is sent
// again under its number with PossDupFlag; or the gateway's own number shows a report that did not arrive, which the
// session asks for. So an order is neither sent twice as two nor taken for lost, whichever process was killed. One that
// has no report when its time is over is unknown, and the ledger says what became of it.
//
// The codec is the probe's own: the observer shares nothing with the observed.
package fixdoor
