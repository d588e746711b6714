package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/probe/grid"
	"github.com/ordergrid/ordergrid/probe/ledger"
	"github.com/ordergrid/ordergrid/probe/load"
	"github.com/ordergrid/ordergrid/probe/report"
)

// verifyLimit bounds the reading of one copy's log: a gigabyte takes seconds.
const verifyLimit = 2 * time.Minute

// verify reads back every copy of the probe's partition and compares it with the records of the
// step. What cannot be verified makes the step invalid; it is never assumed correct.
func (r *Run) verify(ctx context.Context, sh *share, ps *report.ProbeStep) {
	p := sh.p
	copies := r.grid.Copies(p.partition)
	if len(copies) == 0 {
		ps.Detector = fmt.Sprintf("partition %s has no primary: its log cannot be read", p.partition)
		return
	}
	var last uint64 // every acknowledged order is at or before it
	for i := range sh.orders {
		if sh.orders[i].Fate == load.Acked {
			last = max(last, sh.orders[i].Seq)
		}
	}
	p.out.Copies = p.out.Copies[:0]
	for _, c := range copies {
		counts, examples, err := r.verifyCopy(ctx, sh, c, last)
		if errors.Is(err, errLeft) {
			ps.Notes = append(ps.Notes, fmt.Sprintf("%s at %s: %v", p.partition, c.Member, err))
			continue // acknowledged orders are on the remaining copies
		}
		if err != nil && ps.Detector == "" {
			ps.Detector = err.Error()
		}
		for _, e := range examples {
			ps.Notes = append(ps.Notes, fmt.Sprintf("%s at %s: %s", p.partition, c.Member, e))
		}
		if c.Primary {
			ps.Ledger.Add(counts)
		} else {
			ps.Backups.Add(counts)
		}
		p.out.Copies = append(p.out.Copies, c.Member)
	}
	if r.door != nil && ps.Acked > 0 {
		ps.MinCopies = len(p.out.Copies) // a report does not say how many there were
	}
	if len(p.out.Copies) == 0 && ps.Detector == "" {
		ps.Detector = "no copy of the log could be read back"
	}
}

// errLeft: a copy went out of sync while it was read.
var errLeft = errors.New("left the in-sync set before its log was read back")

func (r *Run) verifyCopy(ctx context.Context, sh *share, c grid.Copy, last uint64) (report.LedgerCounts, []string, error) {
	p := sh.p
	v := p.verifiers[c.Member]
	if v == nil {
		v = ledger.NewVerifier(p.load.ID, p.base.Seq, p.base.Hash, p.base.Known)
		p.verifiers[c.Member] = v
	}
	ctx, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	v.Begin(sh.first, sh.orders, sh.content)
	readErr := r.readOn(ctx, p, c, v, last)
	counts, err := v.Finish()
	examples := v.Examples()
	switch {
	case readErr == nil:
		return counts, examples, err
	case grid.IsLogFault(readErr):
		counts.ChainBreaks++
		return counts, append(examples, readErr.Error()), nil
	case errors.Is(readErr, grid.ErrShort):
		// A log that never reaches the acknowledged orders has lost them.
		return counts, append(examples, readErr.Error()), err
	case errors.Is(readErr, errLeft):
		return report.LedgerCounts{}, nil, readErr
	}
	// The connection failed, not the log: nothing is known about it.
	return report.LedgerCounts{}, nil, fmt.Errorf("the log could not be read back: %w", readErr)
}

// readOn reads a copy's log to the end, reconnecting as often as needed.
func (r *Run) readOn(ctx context.Context, p *probe, c grid.Copy, v *ledger.Verifier, last uint64) error {
	for {
		err := r.grid.ReadLog(ctx, p.partition, c.Address, v.Next(), last, v.Entry)
		if err == nil || grid.IsLogFault(err) || errors.Is(err, grid.ErrShort) || ctx.Err() != nil {
			return err
		}
		if refreshErr := r.grid.Refresh(ctx); refreshErr == nil && !slices.ContainsFunc(r.grid.Copies(p.partition), func(o grid.Copy) bool { return o.Member == c.Member }) {
			return errLeft
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ledgerFile is a ledger on disk.
type ledgerFile struct {
	*ledger.Writer
	f *os.File
}

func createLedger(dir, probe string, h ledger.Header) (*ledgerFile, error) {
	f, err := os.Create(filepath.Join(dir, "ledger-"+probe+".bin"))
	if err != nil {
		return nil, fmt.Errorf("create the ledger: %w", err)
	}
	w, err := ledger.NewWriter(f, h)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("write %s: %w", f.Name(), err)
	}
	return &ledgerFile{Writer: w, f: f}, nil
}

// Close makes the ledger durable.
func (l *ledgerFile) Close() error {
	if err := l.f.Sync(); err != nil {
		_ = l.f.Close()
		return err
	}
	return l.f.Close()
}
