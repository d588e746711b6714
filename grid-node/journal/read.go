package journal

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// DamageError is a journal that cannot be used: something is missing or changed that was
// durable once.
type DamageError struct {
	File   string
	Offset int64
	Seq    uint64 // the entry that should be there
	Text   string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("journal: %s is damaged at offset %d, where entry %d should be: %s", e.File, e.Offset, e.Seq, e.Text)
}

// Cut is a torn end: what was written and not synced when the power went.
type Cut struct {
	File   string
	Offset int64 // where the whole records end
	Bytes  int64 // behind it
}

// Found is what Read found.
type Found struct {
	Identity                 // of the last process that wrote; Life 0: there is no journal
	Config   *replica.Config // the last one, nil if there is none
	Base     uint64          // the state is that after this entry, 0 if there is none
	Seq      uint64          // the last entry
	Hash     uint64
	Bytes    int64
	Cut      *Cut // nil: the journal ends with a whole record

	segments   []segment
	stale      []string
	stateBytes int64
}

// Visitor gets the content of a journal: the parts of the state, if there is one, then the
// entries behind it, in runs that are padded as in a Prepare. The bytes are valid during
// the call.
type Visitor interface {
	State(p *replica.JournalState) error
	Entries(run []byte) error
}

// Read reads a whole journal. An error is a *DamageError, one of the file system, or one of
// the visitor.
func Read(fs FS, v Visitor) (*Found, error) {
	names, err := fs.List()
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	f := &Found{}
	r := reader{fs: fs, v: v, found: f}
	var logs, states []uint64
	for _, name := range names {
		if n, ok := numberOf(name, ".log"); ok {
			logs = append(logs, n)
		} else if n, ok := numberOf(name, ".state"); ok {
			states = append(states, n)
		} else if name == unfinished {
			f.stale = append(f.stale, name)
		}
	}
	if k := len(states); k > 0 { // an earlier one is left when the power went before it was removed
		if err := r.state(states[k-1]); err != nil {
			return nil, err
		}
		for _, n := range states[:k-1] {
			f.stale = append(f.stale, stateName(n))
		}
	}
	for i, n := range logs {
		if i > 0 && n != logs[i-1]+1 {
			return nil, &DamageError{File: segmentName(logs[i-1] + 1), Seq: f.Seq + 1, Text: "the file is missing"}
		}
		if err := r.segment(n, i == len(logs)-1); err != nil {
			return nil, err
		}
	}
	if len(logs) == 0 && len(states) > 0 {
		return nil, &DamageError{File: segmentName(1), Seq: f.Seq + 1, Text: "the file is missing"}
	}
	return f, nil
}

type reader struct {
	fs    FS
	v     Visitor
	found *Found
}

// state reads the state file up to entry base.
func (r *reader) state(base uint64) error {
	name := stateName(base)
	b, err := r.fs.Read(name)
	if err != nil {
		return err
	}
	bad := func(at int64, text string) error {
		return &DamageError{File: name, Offset: at, Seq: base, Text: text}
	}
	h, at, ok, err := readHead(b)
	switch {
	case err != nil:
		return bad(0, err.Error())
	case !ok || h.Seq != base:
		return bad(0, "it does not begin with its head")
	}
	slots, end := stateSlots(b, at)
	if !end {
		return bad(int64(len(b)), "it does not end as a whole state does")
	}
	for p := (replica.JournalState{Base: h.Seq, Hash: h.Hash, Slots: slots}); at < int64(len(b)); {
		k, payload, next, _ := record(b, at) // stateSlots has seen that they are whole
		if k == kindState {
			p.From, p.Next, p.Part = le.Uint32(payload), le.Uint32(payload[4:]), payload[statePartHeader:]
			if err := r.v.State(&p); err != nil {
				return err
			}
		}
		at = next
	}
	f := r.found
	f.Base, f.Seq, f.Hash = h.Seq, h.Seq, h.Hash
	f.Bytes += int64(len(b))
	f.stateBytes = int64(len(b))
	return nil
}

// stateSlots returns how many slots a state has, and whether its file is whole.
func stateSlots(b []byte, at int64) (slots uint32, whole bool) {
	for at < int64(len(b)) {
		k, payload, next, ok := record(b, at)
		switch {
		case !ok:
			return 0, false
		case k == kindEnd:
			return uint32(le.Uint64(payload)), next == int64(len(b))
		}
		at = next
	}
	return 0, false
}

// segment reads a file of the log.
func (r *reader) segment(n uint64, last bool) error {
	f, name := r.found, segmentName(n)
	b, err := r.fs.Read(name)
	if err != nil {
		return err
	}
	bad := func(at int64, text string) error {
		return &DamageError{File: name, Offset: at, Seq: f.Seq + 1, Text: text}
	}
	h, at, ok, err := readHead(b)
	switch {
	case err != nil:
		return bad(0, err.Error())
	case !ok && last && !syncedBehind(b, 0): // it was created, and the power went
		f.stale = append(f.stale, name)
		return nil
	case !ok:
		return bad(0, "it does not begin with its head")
	}
	if h.Seq > f.Seq {
		return bad(0, fmt.Sprintf("the file before it ends with entry %d, and ended with %d when this one was begun", f.Seq, h.Seq))
	}
	f.Identity = Identity{Grid: h.Grid, Partition: h.Partition, Boot: h.Boot, Life: h.Life}
	s := segment{n: n, seq: h.Seq}
	for at < int64(len(b)) {
		k, payload, next, ok := record(b, at)
		if !ok {
			if !last || syncedBehind(b, at) {
				return bad(at, "no whole record is there, and what is behind it, or the next file, was written when it was durable")
			}
			f.Cut = &Cut{File: name, Offset: at, Bytes: int64(len(b)) - at}
			break
		}
		if err := r.record(k, payload); err != nil {
			if d, is := err.(*DamageError); is {
				d.File, d.Offset = name, at
			}
			return err
		}
		at = next
	}
	s.bytes = at
	f.Bytes += at
	f.segments = append(f.segments, s)
	return nil
}

func (r *reader) record(k kind, payload []byte) error {
	switch k {
	case kindConfig:
		c, err := decodeConfig(payload)
		if err != nil {
			return &DamageError{Seq: r.found.Seq + 1, Text: err.Error()}
		}
		r.found.Config = c
	case kindEntries:
		return r.entries(payload)
	}
	return nil
}

// entries passes on those behind what is known. Each has to follow the one before.
func (r *reader) entries(run []byte) error {
	f := r.found
	rest := run
	for len(rest) > 0 {
		var e order.Entry
		entry, after, err := order.NextEntry(rest, &e)
		if err != nil {
			return &DamageError{Seq: f.Seq + 1, Text: err.Error()}
		}
		if e.Seq <= f.Base {
			rest, run = after, after
			continue
		}
		if e.Seq != f.Seq+1 || e.PrevHash != f.Hash {
			return &DamageError{Seq: f.Seq + 1, Text: fmt.Sprintf("entry %d behind hash %016x is there, allowed: entry %d behind %016x", e.Seq, e.PrevHash, f.Seq+1, f.Hash)}
		}
		f.Seq, f.Hash = e.Seq, order.Hash(entry)
		rest = after
	}
	if len(run) == 0 {
		return nil
	}
	return r.v.Entries(run)
}

// Peek returns whose journal a directory holds, without reading the log. Life is 0 if there
// is none.
func Peek(fs FS) (Identity, error) {
	names, err := fs.List()
	if err != nil {
		return Identity{}, err
	}
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		if _, ok := numberOf(name, ".log"); !ok {
			continue
		}
		b, err := fs.Read(name)
		if err != nil {
			return Identity{}, err
		}
		if h, _, ok, err := readHead(b); ok && err == nil {
			return Identity{Grid: h.Grid, Partition: h.Partition, Boot: h.Boot, Life: h.Life}, nil
		}
	}
	return Identity{}, nil
}
