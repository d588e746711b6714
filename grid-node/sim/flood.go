package sim

import (
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// floodOwner opens sessions without limit in some worlds. A client's number, and its, is
// the high half of the ids of its sessions.
const floodOwner = 1000

// floods lets a client open sessions without limit in a third of the worlds.
func floods(p *profile, seed uint64) {
	if rng := rand.New(rand.NewPCG(seed, 0x666c6f6f64)); rng.IntN(3) == 0 {
		p.floods = rng
	}
}

// flooder is that client.
type flooder struct {
	w      *world
	rng    *rand.Rand
	conn   *conn
	opened uint64
}

func (w *world) addFlooder() {
	if w.profile.floods != nil {
		f := &flooder{w: w, rng: w.profile.floods}
		w.after(10*millisecond, f.open)
	}
}

func (f *flooder) open() {
	w := f.w
	if w.now >= w.profile.chaos {
		return
	}
	if f.conn == nil || f.conn.gaveUp || f.conn.proc == nil || f.rng.IntN(50) == 0 {
		f.conn = w.net.dial(f, w.pods[f.rng.IntN(len(w.pods))])
	}
	if f.conn != nil {
		for range 1 + f.rng.IntN(4) {
			f.opened++
			f.conn.send(wire.AppendOpenSession(nil, partition, &wire.OpenSession{ReqID: f.opened, IDHi: floodOwner, IDLo: f.opened, Attempt: 1}))
		}
	}
	w.after(int64(1+f.rng.IntN(30))*millisecond, f.open)
}

func (f *flooder) got(*conn, []byte, uint64) {}
func (f *flooder) closed(c *conn) {
	if f.conn == c {
		f.conn = nil
	}
}

// owner returns the client of a connection, as the accepting node sees it.
func (c *conn) owner() uint64 {
	switch u := c.user.(type) {
	case *client:
		return uint64(u.id + 1)
	case *flooder:
		return floodOwner
	case *regionClient:
		return regionOwner + uint64(u.id)
	case *fixGateway:
		return fixOwner + uint64(u.place)
	}
	return 0
}

// held is a session as the log opened it.
type held struct {
	owner uint64
	epoch uint32
}

// checkI15: a client at its limit of sessions evicts no other's with a new one, and one
// that has any evicts no other's only one. Only sessions opened in the same epoch are
// checked: a new primary may not know the owners of others yet.
func (w *world) checkI15(t *timeline, e *order.Entry, owner uint64) {
	for int(e.Session) >= len(t.held) {
		t.held = append(t.held, held{})
	}
	was := t.held[e.Session]
	mine, theirs := 0, 0
	for _, h := range t.held {
		if h.owner == owner && h.epoch == e.Epoch {
			mine++
		}
		if h.owner == was.owner {
			theirs++
		}
	}
	if was.owner != 0 && was.owner != owner && was.epoch == e.Epoch && (mine >= w.profile.limits.ClientSessions || mine > 0 && theirs == 1) {
		w.violation("I15", "entry %d: client %d, with %d sessions, evicts one of %d, which client %d has", e.Seq, owner, mine, theirs, was.owner)
	}
	t.held[e.Session] = held{owner, e.Epoch}
}
