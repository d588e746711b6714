// Package report turns measurements into tables: published | here | ratio, with a verdict on every
// row.
//
// It is pure: results in, a report out, no clock, no files, no network. The command line, the pods
// of a Job and the operator make the same report from the same results.
//
//	Result (one process)  ── Merge ──►  Result  ── New ──►  Report ── Text, JSON, CSV
package report
