package validate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// Functions is the account of a grid that calls functions for orders: what those of kind Pre set in
// the orders of the run, and the records that copies have of those of kind Post.
type Functions struct {
	Pre, Post []string
	Chains    []string // digests of all that decides, as nodes told
	Stamp     uint32   // the tag with the beginning of one; 0: none
	// Decided are orders of the run, of the copy of each partition that has the most; Values are what
	// is set in these.
	Decided   int64
	Values    []history.SetValue
	Unstamped int64 // orders in a copy in sync without the stamp of a chain

	Copies    int   // whose records were compared
	Records   int64 // of the copy of each partition that has the most
	Failed    int64 // of these, of a call that failed
	Linked    int64 // of these, linked to the one before by entry and message
	Different int64 // entries of which a copy in sync has other records than the others
	Missing   int64 // orders in a copy in sync without a record of an audit trail, those of failed calls with them
	Broken    int64 // records in a copy in sync that are not linked
	Control   FunctionControl
	LeftOut   []string // audit trails that were not in force all the time, and are not judged

	Words  []string // findings, the first of each kind
	Notes  []string
	Unread []string
}

// FunctionControl is the negative control of Functions: of the records of a copy one is taken out,
// one is changed, and two stand at each other's place.
type FunctionControl struct{ Done, Found int64 }

// OK reports whether each was found.
func (c FunctionControl) OK() bool { return c.Done > 0 && c.Found == c.Done }

// TakeFunctions computes the account; nil for a grid that calls none. seed chooses the records of
// the control.
func TakeFunctions(h *history.History, seed uint64) *Functions {
	f := h.Functions
	if f == nil {
		return nil
	}
	a := &Functions{Pre: f.Pre, Chains: f.Chains, Stamp: f.Stamp}
	for _, p := range f.Post {
		a.Post = append(a.Post, p.Name)
	}
	a.leaveOut(f)
	for _, p := range h.Partitions {
		a.decisions(h, p)
		a.records(h, p, seed)
	}
	return a
}

// leaveOut finds the audit trails that cannot be judged: those that were put in force, taken out or
// replaced by another module during the run, as nodes told or a log says.
func (a *Functions) leaveOut(f *history.Functions) {
	for _, p := range f.Post {
		other := func(o history.PostFunction) bool { return o.Name == p.Name && o.SHA256 != p.SHA256 }
		same := func(o history.PostFunction) bool { return o.Name == p.Name && o.SHA256 == p.SHA256 }
		gone := slices.ContainsFunc(f.Records, func(x history.Recorded) bool {
			return x.InSync && slices.ContainsFunc(x.Begun, func(b history.Begun) bool { return !slices.ContainsFunc(b.Post, same) })
		})
		if !p.Audit || slices.Contains(a.LeftOut, p.Name) || !p.Changed && !gone && !slices.ContainsFunc(f.Post, other) {
			continue
		}
		a.LeftOut = append(a.LeftOut, p.Name)
		a.Notes = append(a.Notes, fmt.Sprintf("%s was not in force during the whole drill: that it has a record of each order, and how these are linked, is not judged", p.Name))
	}
}

// decisions looks at what functions of kind Pre set.
func (a *Functions) decisions(h *history.History, p wire.PartitionID) {
	var most *history.Decided
	var unstamped findings
	for i := range h.Functions.Decided {
		d := &h.Functions.Decided[i]
		if d.Partition != p {
			continue
		}
		if most == nil || d.Orders > most.Orders {
			most = d
		}
		if !d.InSync || a.Stamp == 0 {
			continue
		}
		for _, v := range d.Values {
			if v.Tag == a.Stamp && !a.isStamp(v.Value) {
				a.Unstamped += v.Orders
				unstamped.add(true, func() string {
					return fmt.Sprintf("%s: %s: %d orders have tag %d=%.40q, no chain that a node told of", p, d.Where, v.Orders, v.Tag, v.Value)
				})
			}
		}
	}
	a.say(unstamped)
	if most == nil {
		return
	}
	a.Decided += most.Orders
	for _, v := range most.Values {
		at, found := slices.BinarySearchFunc(a.Values, v, func(x, y history.SetValue) int {
			return cmp.Or(cmp.Compare(x.Tag, y.Tag), cmp.Compare(x.Value, y.Value))
		})
		if !found {
			a.Values = slices.Insert(a.Values, at, history.SetValue{Tag: v.Tag, Value: v.Value})
		}
		a.Values[at].Orders += v.Orders
	}
}

// stampSize is how much of a chain is in a stamp.
const stampSize = 16

func (a *Functions) isStamp(value string) bool {
	return slices.ContainsFunc(a.Chains, func(c string) bool { return len(value) == stampSize && strings.HasPrefix(c, value) })
}

func (a *Functions) say(f findings) {
	if a.Words = append(a.Words, f.words...); f.more > 0 {
		a.Words = append(a.Words, fmt.Sprintf("and %d more of this kind", f.more))
	}
}

// records looks at those of functions of kind Post.
func (a *Functions) records(h *history.History, p wire.PartitionID, seed uint64) {
	var copies []*history.Recorded
	for i := range h.Functions.Records {
		switch x := &h.Functions.Records[i]; {
		case x.Partition != p || !x.InSync:
		case x.Error != "":
			if !h.NoHolder(p) {
				a.Unread = append(a.Unread, fmt.Sprintf("%s: records of %s: %s", p, x.Where, x.Error))
			}
		default:
			if short := endsEarly(h, p, x.Where, x.Through); short != "" {
				a.Unread = append(a.Unread, fmt.Sprintf("%s: records of %s %s", p, x.Where, short))
			}
			if base := h.Base(p).Seq; x.From > base+1 {
				a.Notes = append(a.Notes, fmt.Sprintf("%s: %s holds records from entry %d on only, the drill began behind entry %d", p, x.Where, x.From, base))
			}
			copies = append(copies, x)
		}
	}
	if len(copies) == 0 {
		return
	}
	a.Copies += len(copies)
	most := slices.MaxFunc(copies, func(x, y *history.Recorded) int { return cmp.Compare(len(x.Records), len(y.Records)) })
	for i := range most.Records {
		r := &most.Records[i]
		a.Records++
		if r.Fault != "" {
			a.Failed++
		}
		if r.Link == history.Linked && !slices.Contains(a.LeftOut, r.Function) {
			a.Linked++
		}
	}
	var differ, broken, failed findings
	for _, x := range copies {
		if x != most {
			a.Different += different(p, most, x, &differ)
		}
		for _, f := range h.Functions.Post {
			if f.Audit && !slices.Contains(a.LeftOut, f.Name) {
				a.trail(x, f.Name, x == most, &broken, &failed)
			}
		}
	}
	a.say(differ)
	a.say(broken)
	a.say(failed)
	a.audits(h, p, copies)
	done, found := forgeRecords(most, seed)
	a.Control.Done, a.Control.Found = a.Control.Done+done, a.Control.Found+found
}

// endsEarly says that what a copy was asked for behind its log ends before the entries that it had
// committed then: nothing would be compared of the rest.
func endsEarly(h *history.History, p wire.PartitionID, where string, through uint64) string {
	at := slices.IndexFunc(h.Logs, func(l history.Log) bool { return l.Partition == p && l.Where == where && l.Error == "" })
	if at < 0 || through >= h.Logs[at].Committed {
		return ""
	}
	return fmt.Sprintf("end with entry %d, its log had %d committed", through, h.Logs[at].Committed)
}

// trail looks at the records of an audit trail in a copy. Behind the first that is held it may begin
// anew with a change of functions, which is noted.
func (a *Functions) trail(x *history.Recorded, function string, note bool, broken, failed *findings) {
	var before *history.Record
	for i := range x.Records {
		r := &x.Records[i]
		if r.Function != function {
			continue
		}
		last := before
		before = r
		if r.Fault != "" {
			a.Missing++
			failed.add(true, func() string {
				return fmt.Sprintf("%s: %s: the call of %s for entry %d failed: %s", x.Partition, x.Where, function, r.Entry, r.Fault)
			})
			continue
		}
		bad, how := r.Link == history.Broken, "is not linked to the one before"
		if r.Link == history.Anchor && last != nil && last.Fault == "" {
			at := slices.IndexFunc(x.Begun, func(b history.Begun) bool { return b.Entry > last.Entry && b.Entry < r.Entry })
			if bad, how = at < 0, "begins the trail anew, without a change of functions"; !bad && note {
				a.Notes = append(a.Notes, fmt.Sprintf("%s: %s begins anew with entry %d: entry %d changed functions", x.Partition, function, r.Entry, x.Begun[at].Entry))
			}
		}
		if bad {
			a.Broken++
		}
		broken.add(bad, func() string {
			return fmt.Sprintf("%s: %s: the record of %s of entry %d %s", x.Partition, x.Where, function, r.Entry, how)
		})
	}
}

// different counts the entries of which two copies have other records, as far as both hold them.
func different(p wire.PartitionID, most, x *history.Recorded, f *findings) (n int64) {
	from, through := max(most.From, x.From), min(most.Through, x.Through)
	a, b := within(most.Records, from, through), within(x.Records, from, through)
	for len(a) > 0 || len(b) > 0 {
		entry := through
		for _, list := range [][]history.Record{a, b} {
			if len(list) > 0 {
				entry = min(entry, list[0].Entry)
			}
		}
		var one, other []history.Record
		one, a = ofEntry(a, entry)
		other, b = ofEntry(b, entry)
		if slices.EqualFunc(one, other, sameRecord) {
			continue
		}
		n++
		f.add(true, func() string {
			return fmt.Sprintf("%s: entry %d has %d records in %s, and %d, or other ones, in %s", p, entry, len(one), most.Where, len(other), x.Where)
		})
	}
	return n
}

// sameRecord leaves out the link, of which the first that a copy holds has none.
func sameRecord(x, y history.Record) bool {
	x.Link, y.Link = 0, 0
	return x == y
}

func within(list []history.Record, from, through uint64) []history.Record {
	begin, _ := slices.BinarySearchFunc(list, from, func(r history.Record, seq uint64) int { return cmp.Compare(r.Entry, seq) })
	end, _ := slices.BinarySearchFunc(list, through+1, func(r history.Record, seq uint64) int { return cmp.Compare(r.Entry, seq) })
	return list[begin:max(begin, end)]
}

func ofEntry(list []history.Record, entry uint64) (of, rest []history.Record) {
	n := 0
	for n < len(list) && list[n].Entry == entry {
		n++
	}
	return list[:n], list[n:]
}

// audits looks for orders without a record of an audit trail, from the first on that any copy has.
func (a *Functions) audits(h *history.History, p wire.PartitionID, copies []*history.Recorded) {
	var missing findings
	for _, f := range h.Functions.Post {
		if !f.Audit || slices.Contains(a.LeftOut, f.Name) {
			continue
		}
		begin, has := uint64(0), false
		for _, x := range copies {
			for i := range x.Records {
				if r := &x.Records[i]; r.Function == f.Name {
					if !has || r.Entry < begin {
						begin, has = r.Entry, true
					}
					break
				}
			}
		}
		if !has && !hasOrders(h, p) {
			continue
		}
		if !has {
			a.Unread = append(a.Unread, fmt.Sprintf("%s: no copy holds a record of function %s", p, f.Name))
			continue
		}
		for _, x := range copies {
			a.Missing += unrecorded(h, x, f.Name, max(begin, x.From), &missing)
		}
	}
	a.say(missing)
}

func hasOrders(h *history.History, p wire.PartitionID) bool {
	return slices.ContainsFunc(h.Logs, func(l history.Log) bool {
		return l.Partition == p && slices.ContainsFunc(l.Entries, func(e history.Entry) bool { return e.Stream != history.NoOrder })
	})
}

// unrecorded counts the orders of a copy without a record; a failed call has one, with its fault.
func unrecorded(h *history.History, x *history.Recorded, function string, from uint64, f *findings) (n int64) {
	at := slices.IndexFunc(h.Logs, func(l history.Log) bool { return l.Partition == x.Partition && l.Where == x.Where && l.Error == "" })
	if at < 0 {
		return 0 // that the log was not read is said
	}
	rest := x.Records
	for i := range h.Logs[at].Entries {
		e := &h.Logs[at].Entries[i]
		if e.Seq < from || e.Seq > x.Through || e.Stream == history.NoOrder {
			continue
		}
		for len(rest) > 0 && (rest[0].Entry < e.Seq || rest[0].Function != function) && rest[0].Entry <= e.Seq {
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0].Entry == e.Seq {
			rest = rest[1:]
			continue
		}
		n++
		f.add(true, func() string {
			return fmt.Sprintf("%s: %s: order of entry %d has no record of %s", x.Partition, x.Where, e.Seq, function)
		})
	}
	return n
}

// forgeRecords changes the records of a copy in every way that a judge has to see, and returns how
// often that was done and found.
func forgeRecords(x *history.Recorded, seed uint64) (done, found int64) {
	if len(x.Records) < 4 {
		return 0, 0
	}
	at := 1 + int(seed%uint64(len(x.Records)-3))
	for _, forge := range []func(list []history.Record) []history.Record{
		func(list []history.Record) []history.Record { return slices.Delete(list, at, at+1) },
		func(list []history.Record) []history.Record { list[at].Sum ^= 1; return list },
		func(list []history.Record) []history.Record {
			list[at].Sum, list[at+1].Sum = list[at+1].Sum, list[at].Sum
			return list
		},
	} {
		forged := *x
		forged.Records = forge(slices.Clone(x.Records))
		if slices.Equal(forged.Records, x.Records) {
			continue // two records that are the same
		}
		done++
		if different(x.Partition, x, &forged, &findings{}) > 0 {
			found++
		}
	}
	return done, found
}
