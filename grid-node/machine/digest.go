package machine

import "github.com/cespare/xxhash/v2"

// Digest is a hash of the state: equal at equal logs, whatever a replica was sent as a
// snapshot and what it applied itself. It walks all of it.
func (m *Machine) Digest() uint64 {
	b := m.appendHead(nil)
	for i := range m.Sessions.slots {
		b = m.Sessions.slots[i].appendTo(b, m.Sessions.window)
	}
	return xxhash.Sum64(b)
}
