package replica

import "github.com/cespare/xxhash/v2"

// StateDigest is a hash of the state that is a function of the log: equal at equal
// logs, whatever a replica was sent as a snapshot and what it applied itself.
func (r *Replica) StateDigest() uint64 {
	b := (&baseState{cursor: r.cursor.logged}).appendHead(nil)
	for i := range r.sessions.slots {
		b = r.sessions.slots[i].appendTo(b, r.sessions.window)
	}
	return xxhash.Sum64(b)
}
