package flow

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// Format of a recording.
type Format string

// Formats.
const (
	Lobster Format = "lobster" // LOBSTER message file: time,type,order id,size,price,direction
	FIXLog  Format = "fix"     // lines of FIX messages, fields ended by SOH or '|'
)

// ParseFormat reads the name of a format.
func ParseFormat(s string) (Format, error) {
	switch f := Format(strings.ToLower(s)); f {
	case Lobster, FIXLog:
		return f, nil
	}
	return "", fmt.Errorf("replay format %.40q: there are lobster and fix", s)
}

// recorded is one message of a recording. at is ns after the first one.
type recorded struct {
	at              int64
	target, root    int32 // as of event, by place in the recording
	qty, price      uint32
	symbol          uint16
	side, orderType byte
}

// Recording is the order flow of a file: the client's messages, without names, accounts or order
// ids, which are never read or are replaced by indexes.
type Recording struct {
	Name     string
	messages []recorded
	symbols  []string
	// Skipped counts lines that are not client messages: executions, halts, other FIX messages,
	// text; and Orphans cancels and replaces of orders that are older than the recording.
	Skipped, Orphans int
	// Cut: the file continues after the last message that was read.
	Cut bool
}

// LineError is an invalid line of a recording.
type LineError struct {
	Line    int // from 1
	Field   string
	Value   string
	Allowed string
}

func (e *LineError) Error() string {
	return fmt.Sprintf("line %d: %s is %.60q; allowed: %s", e.Line, e.Field, e.Value, e.Allowed)
}

// maxLine bounds a line, in bytes: a FIX message is at most 64 KiB.
const maxLine = 64<<10 + 4<<10

// maxSkipped bounds the lines without orders.
const maxSkipped = 100 * MaxMessages

// Read reads at most most messages of a recording; its memory is bounded by that, for every file.
func Read(r io.Reader, name string, f Format, most int) (*Recording, error) {
	if most < 1 || most > MaxMessages {
		return nil, fmt.Errorf("max-messages %d: must be 1 to %d", most, MaxMessages)
	}
	rec := &reader{Recording: Recording{Name: name}, most: most, live: map[string]liveOrder{}, symbolIDs: map[string]uint16{}}
	parse := rec.lobster
	if f == FIXLog {
		parse = rec.fix
	} else {
		rec.defaultSymbol = symbolOfName(name)
	}
	if err := rec.lines(r, parse); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(rec.messages) == 0 {
		return nil, fmt.Errorf("%s: no order in it (%d lines skipped); a %s recording has at least one new order", name, rec.Skipped, f)
	}
	return &rec.Recording, nil
}

// reader is the state of Read.
type reader struct {
	Recording
	most          int
	line          int
	first, last   int64
	live          map[string]liveOrder
	symbolIDs     map[string]uint16
	defaultSymbol string
}

// liveOrder is an order that a later line may refer to.
type liveOrder struct{ current, root int32 }

func (r *reader) lines(in io.Reader, parse func(string) error) error {
	s := bufio.NewScanner(in)
	s.Buffer(make([]byte, 0, 4096), maxLine)
	for s.Scan() {
		r.line++
		text := strings.TrimSuffix(s.Text(), "\r")
		if text == "" {
			continue
		}
		if len(r.messages) == r.most {
			r.Cut = true
			return nil
		}
		if r.Skipped+r.Orphans > maxSkipped {
			return fmt.Errorf("line %d: %d lines without an order; this is not such a recording", r.line, maxSkipped)
		}
		if err := parse(text); err != nil {
			return err
		}
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return &LineError{r.line + 1, "length", "more", fmt.Sprintf("at most %d bytes a line", maxLine)}
	}
	return s.Err()
}

func (r *reader) fault(field, value, allowed string) error {
	return &LineError{r.line, field, value, allowed}
}

// symbol returns the number of a symbol.
func (r *reader) symbol(s string) (uint16, error) {
	if id, ok := r.symbolIDs[s]; ok {
		return id, nil
	}
	if len(s) == 0 || len(s) > maxSymbol || strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || c == '|' }) {
		return 0, r.fault("symbol", s, fmt.Sprintf("1 to %d printable characters without spaces", maxSymbol))
	}
	if len(r.symbols) > math.MaxUint16 {
		return 0, r.fault("symbol", s, fmt.Sprintf("at most %d different ones", math.MaxUint16+1))
	}
	id := uint16(len(r.symbols))
	r.symbolIDs[s], r.symbols = id, append(r.symbols, s)
	return id, nil
}

// maxSymbol keeps an order within the planned length in a grid.
const maxSymbol = 16

// add appends a message of order id; its kind follows from target and root.
func (r *reader) add(at int64, m recorded) int32 {
	if len(r.messages) == 0 {
		r.first = at
	}
	r.last = at
	m.at = at - r.first
	r.messages = append(r.messages, m)
	return int32(len(r.messages) - 1)
}

// Messages is the number of messages read.
func (r *Recording) Messages() int { return len(r.messages) }

// Span is the time from the first message to the last.
func (r *Recording) Span() time.Duration {
	return time.Duration(r.messages[len(r.messages)-1].at)
}

// Count returns how many messages all probes together send when the recording is played at a speed
// for a time, and the most that one probe sends.
func (r *Recording) Count(speed int, from, to time.Duration, probes int) (all, most int64) {
	each := make([]int64, probes)
	for i := range r.messages {
		at := r.messages[i].at / int64(speed)
		if at >= int64(to) {
			break
		}
		if at >= int64(from) {
			all++
			each[r.owner(int32(i), probes)]++
		}
	}
	for _, n := range each {
		most = max(most, n)
	}
	return all, most
}

// rootOf is the order a message belongs to.
func (r *Recording) rootOf(i int32) int32 {
	if root := r.messages[i].root; root < 0 {
		return ^root
	}
	return r.messages[i].root
}

// owner is the probe that sends message i: all messages of an order are of one probe.
func (r *Recording) owner(i int32, probes int) int {
	return int(hash(0, uint64(r.rootOf(i))) % uint64(probes))
}

// play is one probe's share of the recording at a speed.
func (r *Recording) play(p Params) *Schedule {
	length, probes := int64(p.Warmup+p.Measure), max(p.Probes, 1)
	s := &Schedule{messages: &Messages{symbols: r.symbols}}
	place := map[int32]int32{} // index of a message here, by index in the recording
	for i := range r.messages {
		m := r.messages[i]
		at := m.at / int64(max(p.Speed, 1))
		if at >= length {
			break
		}
		if r.owner(int32(i), probes) != p.Probe {
			continue
		}
		here := int32(len(s.at))
		place[int32(i)] = here
		e := event{target: -1, root: here}
		if m.target >= 0 {
			root := r.rootOf(int32(i))
			e.target, e.root = place[m.target], place[root]
			if m.target != root {
				delete(place, m.target) // no other message changes it
			}
			if m.root < 0 {
				e.root = ^e.root
			} else {
				delete(place, root)
			}
		}
		s.at = append(s.at, at)
		s.messages.events = append(s.messages.events, e)
		s.messages.recorded = append(s.messages.recorded, m)
	}
	if !p.Varied {
		s.messages = nil
	}
	return s
}
