package limits

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Source tells of what object a configuration is, and of which state of it, where the operator
// makes its file: a profile of limits, a calendar of sessions, or a region. By it a primary whose file is
// behind does not put an earlier one in force again: docs/adr/0102. A file that a person keeps
// needs none.
type Source struct {
	Grid       string `json:"grid"`       // UID of the OrderGrid that the file is for: sources are compared within one
	Object     string `json:"object"`     // UID of the RiskProfile, the InstrumentSet or the GridRegion
	SinceMs    int64  `json:"sinceMs"`    // when the grid was first given that object, Unix time; later than for the one before
	Generation int64  `json:"generation"` // metadata.generation of the object
}

// SourcedFile is what the name of a file of limits ends with that has a source. Where it is there a
// node reads it in place of the one that --limits names. The operator writes both, since nodes of
// releases before refuse a source.
const SourcedFile = ".sourced"

// maxUID bounds the UIDs of a source, in bytes.
const maxUID = 64

// Supersedes reports whether a profile with the source s may take the place of one with the
// source of; nil is a profile without a source. A profile of another grid gives way to any: it is
// from before a restore, or of the site that the partition was a standby of.
func (s *Source) Supersedes(of *Source) bool {
	switch {
	case of == nil:
		return true
	case s == nil:
		return false
	case s.Grid != of.Grid:
		return true
	case s.SinceMs != of.SinceMs:
		return s.SinceMs > of.SinceMs
	}
	return s.Generation > of.Generation
}

// String names the source for a message.
func (s *Source) String() string {
	if s == nil {
		return "no source"
	}
	return fmt.Sprintf("generation %d of %s, since %d", s.Generation, s.Object, s.SinceMs)
}

// Validate reports what of a source is invalid; nil is valid.
func (s *Source) Validate() error {
	if s == nil {
		return nil
	}
	if s.Grid == "" || s.Object == "" || len(s.Grid) > maxUID || len(s.Object) > maxUID || s.SinceMs <= 0 || s.Generation <= 0 {
		return fmt.Errorf("source %+v, allowed: grid and object of 1..%d bytes, sinceMs and generation above 0", *s, maxUID)
	}
	return nil
}

// Text returns the source as logs have it, nil without one.
func (s *Source) Text() []byte {
	if s == nil {
		return nil
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic("source: " + err.Error()) // it has texts and numbers only
	}
	return b
}

// ParseSource reads what Text returns.
func ParseSource(text []byte) (*Source, error) {
	if len(text) == 0 {
		return nil, nil
	}
	s := &Source{}
	err := json.Unmarshal(text, s)
	if err == nil {
		err = s.Validate()
	}
	if err == nil && !bytes.Equal(s.Text(), text) {
		err = fmt.Errorf("source %.100q, allowed: as Text writes it", text)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Plain returns the profile without its source, as releases before it have it.
func (p *Profile) Plain() *Profile {
	q := *p
	q.Source = nil
	return &q
}
