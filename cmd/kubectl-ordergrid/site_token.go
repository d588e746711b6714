package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// siteToken is where the logs of a demoted grid end: with it the other site is promoted without a loss.
type siteToken struct {
	Kind string `json:"kind"` // tokenKind
	Grid string `json:"grid"`
	// UID is that of the demoted OrderGrid, or the URL of its arbiter.
	UID        string     `json:"uid"`
	Made       time.Time  `json:"made"`
	Partitions []tokenEnd `json:"partitions"`
}

const tokenKind = "OrderGridSiteToken"

// tokenEnd is the part of one partition.
type tokenEnd struct {
	Partition string `json:"partition"`      // p1
	Term      int64  `json:"term"`           // of the site that was demoted
	Seq       uint64 `json:"seq"`            // last entry; 0: the log is empty
	Hash      string `json:"hash,omitempty"` // of it
}

const maxToken = 1 << 20

// readToken reads a token from a file, "-" for standard input.
func readToken(name string, stdin io.Reader) (*siteToken, error) {
	var r io.Reader = stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("--token: %w", err)
		}
		defer f.Close() //nolint:errcheck // it is read only
		r = f
	}
	text, err := io.ReadAll(io.LimitReader(r, maxToken+1))
	if err != nil {
		return nil, fmt.Errorf("--token: %w", err)
	}
	t := &siteToken{}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err = dec.Decode(t)
	if err == nil && dec.More() {
		err = errors.New("data after the object")
	}
	if err == nil {
		err = t.check()
	}
	if err != nil || len(text) > maxToken {
		return nil, usageError{fmt.Errorf("--token %s: not a token (%w), allowed: what kubectl ordergrid demote of the other site wrote", name, err)}
	}
	return t, nil
}

func (t *siteToken) check() error {
	if t.Kind != tokenKind || len(t.Partitions) == 0 {
		return fmt.Errorf("kind is %.40q with %d partitions, allowed: %s with one or more", t.Kind, len(t.Partitions), tokenKind)
	}
	seen := map[string]bool{}
	for _, e := range t.Partitions {
		n, err := strconv.ParseUint(e.Hash, 16, 64)
		_, bad := wire.ParsePartitionID(e.Partition)
		switch {
		case bad != nil:
			return bad
		case seen[e.Partition]:
			return fmt.Errorf("%s is there twice", e.Partition)
		case e.Seq == 0 && e.Hash != "", e.Seq > 0 && (err != nil || fmt.Sprintf("%016x", n) != e.Hash), e.Seq > 1<<62, e.Term < 0:
			return fmt.Errorf("%s: term %d, seq %d, hash %.20q, allowed: the number of an entry and its hash, 16 lowercase hexadecimal digits", e.Partition, e.Term, e.Seq, e.Hash)
		}
		seen[e.Partition] = true
	}
	return nil
}

// of returns the part of a partition; nil: it has none.
func (t *siteToken) of(p wire.PartitionID) *tokenEnd {
	for i := range t.Partitions {
		if t.Partitions[i].Partition == p.String() {
			return &t.Partitions[i]
		}
	}
	return nil
}
