// Package load brings the orders, or the values of a region, of a file or a database into a grid. A Source yields rows, a
// Loader sends them to a Target with many on the way, settles every one, and keeps how far it has come, so that a load that
// was interrupted is resumed without a row lost or entered twice.
package load

import (
	"errors"
	"fmt"
	"time"
)

// Source yields the rows of a load, the same ones in the same order whenever it is opened.
type Source interface {
	// Next returns the next row, io.EOF behind the last one. Other errors end the load.
	Next() (Row, error)
	// Progress is how much has been read, in units of the source, and how much there is; 0 if that is not known.
	Progress() (read, total int64)
	// ID tells this source from others: a load is only resumed with the source that it began with.
	ID() string
	Close() error
}

// Row is one order or value of a source. Its bytes are valid until the next call of Next.
type Row struct {
	Where   string // where it is, such as "line 17"
	Key     []byte // of a value
	Message []byte // a FIX message, or the value
	Err     error  // why the row is no order or value; Message is what was read then
}

// Outcome is how one row ended.
type Outcome uint8

// Outcomes of rows.
const (
	Accepted Outcome = iota // committed by this load
	Present                 // the grid had this very message under its ClOrdID, or this value under its key
	Refused                 // by the reader of the source, or by the grid
)

// Counts of the rows that are settled.
type Counts struct {
	Rows     int64 `json:"rows"`
	Accepted int64 `json:"accepted"`
	Present  int64 `json:"present"`
	Refused  int64 `json:"refused"`
}

func (c *Counts) add(o Outcome) {
	c.Rows++
	switch o {
	case Accepted:
		c.Accepted++
	case Present:
		c.Present++
	case Refused:
		c.Refused++
	}
}

// Refusal is one line of the report of refused rows.
type Refusal struct {
	Where   string `json:"where"`
	ClOrdID string `json:"clOrdID,omitempty"`
	Key     string `json:"key,omitempty"`
	By      string `json:"by"`             // source or grid
	Code    string `json:"code,omitempty"` // of the grid's reject
	Tag     uint32 `json:"tag,omitempty"`  // FIX tag at fault
	Reason  string `json:"reason"`
	Message string `json:"message"` // the row or value, with | for SOH
}

// Progress of a load that runs.
type Progress struct {
	Counts
	Resumed  int64         // rows that were settled before this run
	Elapsed  time.Duration // of this run
	Rate     float64       // rows settled a second since the Progress before
	Fraction float64       // of the source that was read, 0 if its size is not known
	Trouble  string        // why rows are tried again; empty while none is
}

// Remaining estimates the time left, 0 if it is not known.
func (p *Progress) Remaining() time.Duration {
	if p.Fraction <= 0 || p.Rows <= p.Resumed {
		return 0
	}
	perRow := p.Elapsed / time.Duration(p.Rows-p.Resumed)
	return time.Duration(float64(p.Rows)/p.Fraction-float64(p.Rows)) * perRow
}

// Options of a Loader.
type Options struct {
	Rate     float64       // rows a second at most; 0: as many as the grid takes
	InFlight int           // rows that are not settled, 1 to MaxInFlight; 0: DefaultInFlight
	Patience time.Duration // how long a row that the grid cannot take for now is tried again; 0: DefaultPatience
	State    string        // file that keeps how far the load has come; empty: it cannot be resumed
	Refusals string        // file for a Refusal in JSON a line; empty: they are counted only
	Notify   func(Progress)
	Every    time.Duration // between calls of Notify, and states; 0: a second
}

// Defaults and limits of Options.
const (
	DefaultInFlight = 4096
	MaxInFlight     = 1 << 16
	DefaultPatience = time.Minute
)

func (o *Options) complete() error {
	if o.InFlight == 0 {
		o.InFlight = DefaultInFlight
	}
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	if o.Every == 0 {
		o.Every = time.Second
	}
	switch {
	case o.Rate < 0 || o.Rate > 1e7:
		return fmt.Errorf("rate: value %g, allowed: 0 (no limit) to 10000000 rows a second", o.Rate)
	case o.InFlight < 1 || o.InFlight > MaxInFlight:
		return fmt.Errorf("in flight: value %d, allowed: 1 to %d", o.InFlight, MaxInFlight)
	case o.Patience < 0:
		return fmt.Errorf("patience: value %v, allowed: more than 0", o.Patience)
	}
	return nil
}

// ErrOtherSource is returned for a state file of another source, grid or region, or of values that are put in another way.
var ErrOtherSource = errors.New("the state file is of another load")
