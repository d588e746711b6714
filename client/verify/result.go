package verify

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/ordergrid/ordergrid/client"
)

// Exit codes of the commands that print a Result.
const (
	ExitEqual      = 0 // everything compared is equal and in order
	ExitDifferent  = 1 // a difference, gap, duplicate or broken chain was found
	ExitIncomplete = 4 // nothing wrong was found, but something could not be read, or a partition has no primary
)

// Result of Run.
type Result struct {
	Partitions []Partition `json:"partitions"`
	Orders     uint64      `json:"orders"`   // orders compared, in all partitions
	Entries    uint64      `json:"entries"`  // log entries compared
	Problems   uint64      `json:"problems"` // differences, gaps, duplicates, broken chains
	// Twice are ClOrdIDs that orders of different partitions have, at most MaxProblems
	// of TwiceCount. Each is a problem: a ClOrdID belongs to one partition.
	Twice      []string `json:"twice,omitempty"`
	TwiceCount uint64   `json:"twiceCount,omitempty"`
	// AcrossError is why ClOrdIDs of different partitions were not compared.
	AcrossError string `json:"acrossError,omitempty"`
	Unread      uint64 `json:"unread"`   // replicas, their executions and sink files that could not be read
	Unserved    uint64 `json:"unserved"` // partitions without a primary
}

// Partition is what was found in one partition.
type Partition struct {
	ID      string `json:"id"`
	Epoch   uint64 `json:"epoch"`
	Lineage uint32 `json:"lineage"`
	Common  uint64 `json:"common"`  // lowest committed seq of the in-sync replicas: counted up to here; replicas are compared as far as they are
	First   uint64 `json:"first"`   // entry from which on replicas are compared
	Entries uint64 `json:"entries"` // compared, First to Common
	// Freed is the last entry that one of the replicas no longer holds: entries are compared from
	// the next one on. 0 if the log is held from its beginning, which need not be entry 1.
	Freed uint64 `json:"freed,omitempty"`
	// Unserved is why the partition has no serving primary, "" if it has one: equal empty copies
	// prove nothing.
	Unserved string    `json:"unserved,omitempty"`
	Hash     string    `json:"hash"` // of the entry Common, 16 hex digits; it covers everything before
	Kinds    Kinds     `json:"kinds"`
	Replicas []Replica `json:"replicas"`
	Sink     *Sink     `json:"sink,omitempty"`
	// Replay is nil unless the log was to be matched again.
	Replay *Replay `json:"replay,omitempty"`
	// Problems are the first findings, at most MaxProblems of ProblemCount.
	Problems     []string `json:"problems,omitempty"`
	ProblemCount uint64   `json:"problemCount"`
}

// MaxProblems bounds the findings listed per partition; all are counted.
const MaxProblems = 20

// Kinds counts entries up to Common.
type Kinds struct {
	Orders   uint64 `json:"orders"`
	Sessions uint64 `json:"sessions"` // opened
	Cursors  uint64 `json:"cursors"`
	Noops    uint64 `json:"noops"`
	// Truncates are the entries that freed others.
	Truncates uint64 `json:"truncates,omitempty"`
}

// Replica is one copy of a partition's log.
type Replica struct {
	Member    string `json:"member"`
	Address   string `json:"address"`
	Primary   bool   `json:"primary"`
	InSync    bool   `json:"inSync"`
	Committed uint64 `json:"committed"` // when reading began
	Behind    uint64 `json:"behind"`    // entries behind the most advanced replica then
	Read      uint64 `json:"read"`      // entries read and checked
	Error     string `json:"error,omitempty"`
}

// Sink is what the file sink has of a partition.
type Sink struct {
	Files   []string `json:"files"`
	First   uint64   `json:"first"` // 0 if there is no entry in any file
	Last    uint64   `json:"last"`
	Orders  uint64   `json:"orders"`  // orders of the log up to Common that are in the sink
	Missing uint64   `json:"missing"` // entries up to Last that are in no file
	// Repeats are entries that several files have, equal, because a primary of a
	// later epoch goes on where its own file ends: allowed.
	Repeats uint64 `json:"repeats"`
	// Duplicates are entries twice in one file, or in more files than there were
	// primaries since; OutOfOrder are lines that go back. Both are problems.
	Duplicates uint64 `json:"duplicates"`
	OutOfOrder uint64 `json:"outOfOrder"`
	Behind     uint64 `json:"behind"` // entries up to Common that the sink does not have yet
	// Superseded are lines of a lineage that ended when the loss of data was accepted,
	// for entries that a later lineage has anew: not compared.
	Superseded uint64 `json:"superseded,omitempty"`
	// SetAside are files of nodes that belong to another history than the log: not compared.
	SetAside []string `json:"setAside,omitempty"`
	Error    string   `json:"error,omitempty"`
}

func (p *Partition) problem(format string, args ...any) {
	p.ProblemCount++
	if len(p.Problems) < MaxProblems {
		p.Problems = append(p.Problems, fmt.Sprintf(format, args...))
	}
}

// sum fills the totals.
func (r *Result) sum() {
	for i := range r.Partitions {
		p := &r.Partitions[i]
		r.Orders += p.Kinds.Orders
		r.Entries += p.Entries
		r.Problems += p.ProblemCount
		for j := range p.Replicas {
			if p.Replicas[j].Error != "" {
				r.Unread++
			}
		}
		if p.Sink != nil && p.Sink.Error != "" {
			r.Unread++
		}
		if p.Replay != nil {
			r.Unread += p.Replay.unread()
		}
		if p.Unserved != "" {
			r.Unserved++
		}
	}
	r.Problems += r.TwiceCount
}

// judgeService checks that the partition has a serving primary. A primary begins each of its epochs
// with an entry, so an empty log was never served.
func (p *Partition) judgeService(info client.PartitionInfo) {
	read := false
	for i := range p.Replicas {
		read = read || p.Replicas[i].Error == ""
	}
	switch {
	case len(info.Members) == 0: // a problem by itself
	case info.Primary.ID == "":
		p.Unserved = fmt.Sprintf("no primary is known at epoch %d", info.Epoch)
	case read && p.Entries == 0:
		p.Unserved = fmt.Sprintf("no entry is committed on every in-sync replica at epoch %d; %s is reported as the primary", info.Epoch, info.Primary.ID)
	}
}

// setBehind counts from the log's first entry: one without any is behind by the log.
func (p *Partition) setBehind() {
	most := uint64(0)
	for i := range p.Replicas {
		most = max(most, p.Replicas[i].Committed)
	}
	for i := range p.Replicas {
		if r := &p.Replicas[i]; r.Error == "" && most > 0 {
			r.Behind = most - min(most, max(r.Committed, max(p.First, 1)-1))
		}
	}
}

// ExitCode is what a command ends with.
func (r *Result) ExitCode() int {
	switch {
	case r.Problems > 0:
		return ExitDifferent
	case r.Unread > 0 || r.Unserved > 0 || r.AcrossError != "" || len(r.Partitions) == 0:
		return ExitIncomplete
	}
	return ExitEqual
}

// WriteJSON prints the result as one indented JSON object.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteText prints the result for people.
func (r *Result) WriteText(w io.Writer) error {
	out := &printer{w: w}
	for i := range r.Partitions {
		r.Partitions[i].text(out)
	}
	verdict := "EQUAL: all replicas hold the same bytes"
	switch r.ExitCode() {
	case ExitDifferent:
		verdict = fmt.Sprintf("DIFFERENT: %d problems", r.Problems)
	case ExitIncomplete:
		verdict = "INCOMPLETE: no problem found, but " + r.lacking()
	}
	for _, text := range r.Twice {
		out.printf("PROBLEM  %s\n", text)
	}
	if n := r.TwiceCount - uint64(len(r.Twice)); n > 0 {
		out.printf("PROBLEM  and %d more ClOrdIDs in two partitions\n", n)
	}
	out.printf("%s; %d orders in %d entries of %d partitions compared\n", verdict, r.Orders, r.Entries, len(r.Partitions))
	return out.err
}

// lacking is what is missing for a verdict.
func (r *Result) lacking() string {
	var list []string
	if r.Unread > 0 {
		list = append(list, fmt.Sprintf("%d replicas, sinks or executions could not be read", r.Unread))
	}
	if r.Unserved > 0 {
		list = append(list, fmt.Sprintf("%d partitions have no primary", r.Unserved))
	}
	if r.AcrossError != "" {
		list = append(list, "ClOrdIDs of different partitions were not compared: "+r.AcrossError)
	}
	if len(list) == 0 {
		list = append(list, "there is no partition")
	}
	return strings.Join(list, ", and ")
}

func (p *Partition) text(out *printer) {
	compared := "nothing compared"
	if p.Entries > 0 {
		compared = fmt.Sprintf("compared %d..%d", p.First, p.Common)
	}
	out.printf("%s  epoch %d  lineage %d  %s  orders %d  hash %s\n", p.ID, p.Epoch, p.Lineage, compared, p.Kinds.Orders, p.Hash)
	if p.Unserved != "" {
		out.printf("  NOT SERVED  %s\n", p.Unserved)
	}
	for _, m := range p.Replicas {
		role := "backup "
		switch {
		case m.Primary:
			role = "primary"
		case !m.InSync:
			role = "learner"
		}
		out.printf("  %s  %-34s %-21s committed %d", role, m.Member, m.Address, m.Committed)
		if m.Behind > 0 {
			out.printf("  behind %d", m.Behind)
		}
		if m.Error != "" {
			out.printf("  NOT READ: %s", m.Error)
		}
		out.printf("\n")
	}
	if s := p.Sink; s != nil {
		out.printf("  sink     %d files, entries %d..%d, orders %d, missing %d, repeats around failovers %d, duplicates %d, out of order %d, behind %d", len(s.Files), s.First, s.Last, s.Orders, s.Missing, s.Repeats, s.Duplicates, s.OutOfOrder, s.Behind)
		if s.Superseded > 0 {
			out.printf(", lines of earlier lineages not compared %d", s.Superseded)
		}
		if len(s.SetAside) > 0 {
			out.printf(", set aside and not compared: %s", strings.Join(s.SetAside, " "))
		}
		if s.Error != "" {
			out.printf("  NOT READ: %s", s.Error)
		}
		out.printf("\n")
	}
	if p.Replay != nil {
		p.Replay.text(out)
	}
	for _, text := range p.Problems {
		out.printf("  PROBLEM  %s\n", text)
	}
	if n := p.ProblemCount - uint64(len(p.Problems)); n > 0 {
		out.printf("  PROBLEM  and %d more\n", n)
	}
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}
