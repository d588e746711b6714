package arbiter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// A partition of a pair of sites is made at one of them. The record of the other one is a
// standby's: its entries come from a link (docs/adr/0043-a-standby-stores-the-other-sites-entries.md).

// MaxTerm bounds the terms of a site, so that there is always a next one.
const MaxTerm = 1<<31 - 1

// maxSource is the longest Spec.Source: a Reject carries it.
const maxSource = 120

// Promote decides that a standby makes the entries. It counts while Term is above the
// record's.
type Promote struct {
	Term uint64 `json:"term"` // of the site from then on
	// Seq and Hash are the end of the other site's log, which was demoted: nothing is lost.
	Seq  uint64 `json:"seq,omitempty"`
	Hash string `json:"hash,omitempty"` // 16 lower-case hex digits
	// Forced: without them. What this site lacks is lost, and the lineage rises.
	Forced bool `json:"forced,omitempty"`
}

// Demote decides that a site makes no more entries. It counts while the site makes them, in
// this term.
type Demote struct {
	Wanted bool   `json:"wanted"`
	Term   uint64 `json:"term"`
}

// UnmarshalJSON replaces all fields: what an earlier decision had must not survive in a new one.
func (p *Promote) UnmarshalJSON(b []byte) error {
	type plain Promote
	var v plain
	if err := strict(b, &v); err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	*p = Promote(v)
	return nil
}

// UnmarshalJSON replaces all fields.
func (d *Demote) UnmarshalJSON(b []byte) error {
	type plain Demote
	var v plain
	if err := strict(b, &v); err != nil {
		return fmt.Errorf("demote: %w", err)
	}
	*d = Demote(v)
	return nil
}

func strict(b []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data after the object")
	}
	return nil
}

// HashValue is Hash as a number, 0 for none.
func (p *Promote) HashValue() uint64 {
	n, _ := strconv.ParseUint(p.Hash, 16, 64)
	return n
}

// CheckSite rejects decisions about the site that nothing could follow from.
func (s *Spec) CheckSite() error {
	p := &s.Promote
	n, err := strconv.ParseUint(p.Hash, 16, 64)
	token := err == nil && fmt.Sprintf("%016x", n) == p.Hash
	switch {
	case s.Standby && s.Restore != nil:
		return errors.New("standby and restore: both are given, allowed: one; a standby gets its entries from the other site, not from an archive")
	case len(s.Source) > maxSource:
		return fmt.Errorf("source: %d bytes, allowed: at most %d", len(s.Source), maxSource)
	case p.Term > MaxTerm || s.Demote.Term > MaxTerm:
		return fmt.Errorf("promote.term: value %d, demote.term: value %d, allowed: at most %d", p.Term, s.Demote.Term, MaxTerm)
	case *p == (Promote{}):
		return nil
	case p.Term == 0:
		return errors.New("promote.term: value 0, allowed: a term above those of both sites")
	case p.Forced && (p.Seq != 0 || p.Hash != ""):
		return fmt.Errorf("promote: forced with seq %d and hash %.20q, allowed: a token, seq and hash of the other site's last entry, or forced, which loses what this site lacks", p.Seq, p.Hash)
	case !p.Forced && p.Seq == 0 && p.Hash != "":
		return fmt.Errorf("promote.seq: value 0 with hash %.20q, allowed: the number of the other site's last entry", p.Hash)
	case !p.Forced && p.Seq != 0 && !token:
		return fmt.Errorf("promote.hash: value %.20q, allowed: 16 lower-case hex digits, the hash of the other site's entry %d", p.Hash, p.Seq)
	}
	return nil
}

// promotes reports whether the change ends Standby: epoch and lineage may jump then, above
// those of the log, which are of the other site.
func promotes(old, next Record) bool { return old.Epoch > 0 && old.Standby && !next.Standby }

func ruleTermFalls(old, next Record) string {
	if next.Term >= old.Term {
		return ""
	}
	return fmt.Sprintf("term %d is below %d: the term of a site never falls; read the partition again and propose %d", next.Term, old.Term, old.Term)
}

func ruleTermMoves(old, next Record) string {
	if next.Term <= old.Term || old.Epoch == 0 || next.Standby != old.Standby {
		return ""
	}
	return fmt.Sprintf("term %d does not follow %d: it rises only together with the role of the site; keep it as it was", next.Term, old.Term)
}

func ruleFirstRole(old, next Record) string {
	if old.Epoch > 0 || next.Epoch == 0 || next.Standby == old.Spec.Standby {
		return ""
	}
	want := siteRole(old.Spec.Standby)
	return fmt.Sprintf("role %s at the first claim, and spec.site.role is %s; claim it as %s", siteRole(next.Standby), want, want)
}

func ruleFirstTerm(old, next Record) string {
	if old.Epoch > 0 || next.Term == 0 {
		return ""
	}
	return fmt.Sprintf("term %d at the first claim: no site can have been promoted yet; set term to 0", next.Term)
}

// ruleStandbyBegins: by a demotion, or because another site was promoted, which has a later term.
func ruleStandbyBegins(old, next Record) string {
	d := old.Spec.Demote
	if old.Epoch == 0 || old.Standby || !next.Standby || next.Term > old.Term || d.Wanted && d.Term == old.Term || old.Spec.ReassertChangeID != "" {
		return ""
	}
	return fmt.Sprintf("role Standby without a demotion: spec.site.demote does not name the term %d; keep the role, or demote the site", old.Term)
}

func ruleStandbyEnds(old, next Record) string {
	p := old.Spec.Promote
	if !promotes(old, next) || p.Term > old.Term && next.Term == p.Term || old.Spec.ReassertChangeID != "" {
		return ""
	}
	return fmt.Sprintf("role Active in term %d without a promotion: spec.site.promote names term %d, and the site is in term %d; "+
		"keep the role, or promote the site to a term above %d", next.Term, p.Term, old.Term, old.Term)
}

func siteRole(standby bool) string {
	if standby {
		return "Standby"
	}
	return "Active"
}
