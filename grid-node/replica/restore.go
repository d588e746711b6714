package replica

import (
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/store"
)

// A record may say that its partition is restored from an archive: up to which entry, with
// which hash, and which epoch and lineage the archive ends in. Then the first claim is made
// by a replica that holds exactly these entries, and it begins a later epoch and a later
// lineage than the archive has seen. Until then the caller hands over the entries by Load.
// Every replica that the record names may load; those that do not claim join the primary
// with what they hold, a prefix of its log.

// Restore is the recovery point of a partition, as its record has it. It never changes.
type Restore struct {
	Seq     uint64 // last entry of the archive, at least 1
	Hash    uint64 // of that entry
	Epoch   uint64 // highest epoch of the grid that was archived, as far as it is known
	Lineage uint64 // the same for its lineage
}

// LoadError is an entry that Load did not store.
type LoadError struct {
	Seq uint64 // the entry
	Err error
}

func (e *LoadError) Error() string { return fmt.Sprintf("entry %d: %v", e.Seq, e.Err) }

func (e *LoadError) Unwrap() error { return e.Err }

// Loads returns the recovery point that this replica is to load, and whether it should:
// its record asks for it, names its pod, and is not claimed. The next entry is the one
// behind Status.LastSeq.
func (r *Replica) Loads() (Restore, bool) {
	if r.restore == nil || r.role != RoleClaiming || r.copied || r.prop.active() || r.loaded() || !r.isWanted(r.self.Pod()) && !mutant(mutRestoreUnwanted) {
		return Restore{}, false
	}
	return *r.restore, true
}

// Restoring returns the recovery point of a partition that is to be restored and is not
// claimed yet, as far as this replica knows.
func (r *Replica) Restoring() (Restore, bool) {
	if r.restore == nil || r.role != RoleClaiming {
		return Restore{}, false
	}
	return *r.restore, true
}

// loaded reports whether the store ends with exactly the recovery point.
func (r *Replica) loaded() bool {
	last, hash := r.store.Last()
	return last == r.restore.Seq && hash == r.restore.Hash
}

// Load stores entries of the archive, padded as in a Prepare, in the order of the log, when
// Loads reports true. Each is checked as if a primary had sent it. An archive holds
// committed entries only, so they are committed with each part, and what the log says is
// freed is freed as it is loaded: an archive may be larger than the memory. The caller
// steps the replica afterwards: the tick after the last part claims. A *LoadError ends the
// load: the entries before it are stored, and the partition is not claimed.
func (r *Replica) Load(entries []byte) error {
	point, ok := r.Loads()
	if !ok {
		last, _ := r.store.Last()
		return fmt.Errorf("load: the replica is %s with %d entries, allowed: one whose record is to be restored, names its pod, is not claimed, and asks for more", r.role, last)
	}
	r.restTill = 0
	for len(entries) > 0 {
		var e order.Entry
		entry, after, err := order.NextEntry(entries, &e)
		if err != nil {
			last, _ := r.store.Last()
			return &LoadError{Seq: last + 1, Err: err}
		}
		if err := r.loadEntry(&point, entry, &e); err != nil {
			return &LoadError{Seq: e.Seq, Err: err}
		}
		entries = after
	}
	if r.loaded() && mutant(mutRestoreForgetsReplies) {
		r.live.Sessions.ForgetReplies()
	}
	if last, _ := r.store.Last(); !mutant(mutRestoreUncommitted) && (r.loaded() || !mutant(mutRestoreCommitsLate)) {
		r.commitTo(last)
		r.logged.check(r) // before what it has to see is freed
		r.freeSome()
	}
	return nil
}

func (r *Replica) loadEntry(point *Restore, entry []byte, e *order.Entry) error {
	last, _ := r.store.Last()
	switch {
	case e.Seq != last+1:
		return fmt.Errorf("it follows entry %d, allowed: entry %d", last, last+1)
	case e.Seq > point.Seq:
		return fmt.Errorf("it is behind the recovery point of the record, entry %d", point.Seq)
	case uint64(e.Epoch) > point.Epoch:
		return fmt.Errorf("epoch is %d, allowed: at most that of the record, %d", e.Epoch, point.Epoch)
	}
	if hash := order.Hash(entry); e.Seq == point.Seq && hash != point.Hash && !mutant(mutRestoreHistory) {
		return fmt.Errorf("hash is %016x, the record has %016x: the archive is of another history", hash, point.Hash)
	}
	payload := order.Payload(entry)
	if e.Kind == order.KindNoop {
		if lineage := le.Uint64(payload); lineage > point.Lineage {
			return fmt.Errorf("lineage is %d, allowed: at most that of the record, %d", lineage, point.Lineage)
		}
	}
	if err := r.live.Check(e, payload); err != nil {
		return err
	}
	if err := r.storeLoaded(entry, e); err != nil {
		return err
	}
	if mutant(mutRestoreSkips) && e.Kind == order.KindOrder && e.Seq == point.Seq {
		return nil
	}
	r.apply(e, payload)
	return nil
}

// storeLoaded stores an entry. Where memory is short, what may be freed is freed first.
func (r *Replica) storeLoaded(entry []byte, e *order.Entry) error {
	for {
		err := r.store.AppendEntryHinted(entry, e, r.hintOf(entry))
		var full *store.ErrCapacity
		if err == nil || !errors.As(err, &full) {
			return err
		}
		r.logged.check(r)
		before, _ := r.store.Base()
		if r.freeSome(); r.role == RoleStopped {
			return err
		}
		if after, _ := r.store.Base(); after == before {
			return err
		}
	}
}

// mayClaim reports whether this replica holds what its record is to be restored to.
func (r *Replica) mayClaim() bool {
	return r.restore == nil || r.loaded() || mutant(mutRestoreUnloaded)
}

// firstClaim returns the epoch and lineage that a partition begins with.
func firstClaim(from *Restore) (epoch, lineage uint64) {
	switch {
	case from == nil:
		return 1, 1
	case mutant(mutRestoreKeepsLineage):
		return from.Epoch + 1, from.Lineage
	}
	return from.Epoch + 1, from.Lineage + 1
}

// outlived reports whether a record shows that the history of this replica has ended: its
// partition was restored from an archive since. No later configuration has a lineage of
// before, whatever the epochs: the archive need not know the last ones.
func (r *Replica) outlived(c *Config) bool {
	if c.Restore == nil || r.cfg == nil || mutant(mutRestoreOutlived) {
		return false
	}
	known := r.cfg
	if r.told.known != nil {
		known = r.told.known
	}
	return known.Epoch > 0 && known.Lineage <= c.Restore.Lineage
}

// outdated reports whether a record is the one of before the restore, from a read that was
// under way when it was replaced. It is not followed, whatever its epoch.
func (r *Replica) outdated(c *Config) bool {
	return r.restore != nil && c.Restore == nil && c.Epoch > r.epoch && c.Lineage <= r.restore.Lineage
}

// giveWay ends a replica of before the restore. What it holds behind the recovery point was
// given up with it.
func (r *Replica) giveWay(c *Config) {
	last, _ := r.store.Last()
	if r.role == RolePrimary {
		r.failPending()
	}
	r.alarm(AlarmRemoved, fmt.Sprintf("the partition was restored from an archive up to entry %d, as lineage %d; this replica has %d entries of lineage %d, which ended", c.Restore.Seq, c.Restore.Lineage+1, last, r.cfg.Lineage))
	r.restart("of before the restore of the partition")
}
