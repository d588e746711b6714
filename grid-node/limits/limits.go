package limits

import (
	"fmt"
	"math/bits"
	"unsafe"
)

// Config bounds an instance. It is part of its function: replicas need the same. Numbers of
// each kind go from 1 to the bound, symbols and partitions from 0 to one below it.
type Config struct {
	Orders     int // in books
	Recent     int // orders that are remembered as duplicates
	Parties    int
	Sessions   int
	Traders    int
	Desks      int
	Algorithms int
	Clients    int
	Symbols    int
	Profiles   int
	Partitions int
	Kills      int    // of which who and why are kept here; the log has those of all
	Seed       uint64 // of the hashes, which clients should not be able to predict
}

// fields returns the bounds and their names.
func (c *Config) fields() ([]int, []string) {
	return []int{c.Orders, c.Recent, c.Parties, c.Sessions, c.Traders, c.Desks, c.Algorithms, c.Clients, c.Symbols, c.Profiles, c.Partitions, c.Kills},
		[]string{"orders", "recent", "parties", "sessions", "traders", "desks", "algorithms", "clients", "symbols", "profiles", "partitions", "kills"}
}

// most is the largest bound of each field of a Config.
var most = []int{1 << 28, 1 << 28, 1 << 20, 1 << 20, 1 << 16, 1 << 16, 1 << 16, 1 << 20, 1 << 16, 1 << 10, 1 << 12, 1 << 10}

// order is one in a book.
type order struct {
	id, charge  uint64 // charge is what each unit of quantity uses, without the multiplier
	limit       int64
	leaves, cum int64
	party       uint32 // of a free slot the next free one
	symbol      uint16
	side        Side
	traded      bool
}

type symbol struct {
	reference, last int64
	multiplier      uint32 // 0 is undefined
	traded          bool
}

type session struct {
	level   uint64 // messages it may send, in 1/second
	at      int64  // time of level
	profile uint32
}

// client has credit. Client 0 is the total.
type client struct {
	limit, here    int64 // here: what of limit is in this partition
	open, executed int64 // what uses it
	profile        uint32
}

type algorithm struct {
	start   int64
	count   uint32
	profile uint32 // that halted it, 0 for none
}

// Active is a kill in effect.
type Active struct {
	At    int64
	Who   uint32
	N     uint32
	Scope Scope
	Why   Text
}

// profile is Rules, and who set them when.
type profile struct {
	Rules
	at  int64
	who uint32 // 0 is undefined
}

// Limits is the state. It is not safe for concurrent use.
type Limits struct {
	cfg        Config
	now        int64
	sum        uint64 // digest of orders and of recent ones
	orders     []order
	byID       table
	free, top  uint32
	open       int
	recent     []recent // ring
	byKey      table
	head, held uint32
	first      uint64 // number of the oldest in the ring, counted from 0
	parties    []Party
	sessions   []session
	clients    []client
	symbols    []symbol
	algorithms []algorithm
	profiles   []profile
	authorised bitmap // of traders, per profile
	restricted bitmap // of symbols, per profile
	killed     [All]bitmap
	killedAll  bool
	kills      []Active
	gave, took []uint64     // gifts, by partition
	used       [itemEnd]int // the highest number that may not be zero, of symbols, sessions, clients, algorithms and parties
}

// New returns an instance that refuses every order: no sender is authorised.
func New(c Config) (*Limits, error) {
	values, names := c.fields()
	for i, v := range values {
		if v < 1 || v > most[i] {
			return nil, fmt.Errorf("limits: %s is %d, allowed: 1..%d", names[i], v, most[i])
		}
	}
	l := &Limits{
		cfg:        c,
		orders:     make([]order, c.Orders+1),
		byID:       newTable(c.Orders, c.Seed),
		recent:     make([]recent, c.Recent),
		byKey:      newTable(c.Recent, c.Seed),
		parties:    make([]Party, c.Parties+1),
		sessions:   make([]session, c.Sessions+1),
		clients:    make([]client, c.Clients+1),
		symbols:    make([]symbol, c.Symbols),
		algorithms: make([]algorithm, c.Algorithms+1),
		profiles:   make([]profile, c.Profiles+1),
		authorised: newBitmap(c.Profiles+1, c.Traders+1),
		restricted: newBitmap(c.Profiles+1, c.Symbols),
		kills:      make([]Active, 0, c.Kills),
		gave:       make([]uint64, c.Partitions),
		took:       make([]uint64, c.Partitions),
	}
	for s := range l.killed {
		l.killed[s] = newBitmap(1, l.count(Scope(s))+1)
	}
	return l, nil
}

// count is the highest number of a scope.
func (l *Limits) count(s Scope) int {
	return [...]int{l.cfg.Sessions, l.cfg.Traders, l.cfg.Desks, l.cfg.Algorithms, l.cfg.Clients, 0}[s]
}

// Bytes returns what New allocates.
func (c Config) Bytes() int64 {
	n := int64(c.Orders+1)*int64(unsafe.Sizeof(order{})) + int64(places(c.Orders))*8 +
		int64(c.Recent)*int64(unsafe.Sizeof(recent{})) + int64(places(c.Recent))*8 +
		int64(c.Parties+1)*int64(unsafe.Sizeof(Party{})) + int64(c.Sessions+1)*int64(unsafe.Sizeof(session{})) +
		int64(c.Clients+1)*int64(unsafe.Sizeof(client{})) + int64(c.Symbols)*int64(unsafe.Sizeof(symbol{})) +
		int64(c.Algorithms+1)*int64(unsafe.Sizeof(algorithm{})) + int64(c.Profiles+1)*int64(unsafe.Sizeof(profile{})) +
		int64(c.Kills)*int64(unsafe.Sizeof(Active{})) + int64(c.Partitions)*16
	n += int64(c.Profiles+1) * int64(words(c.Traders+1)+words(c.Symbols)) * 8
	for _, k := range []int{c.Sessions, c.Traders, c.Desks, c.Algorithms, c.Clients} {
		n += int64(words(k+1)) * 8
	}
	return n
}

// Open returns the number of orders that use credit.
func (l *Limits) Open() int { return l.open }

// Kills returns the kills in effect, oldest first, at most Config.Kills. The slice is
// valid until the next change.
func (l *Limits) Kills() []Active { return l.kills }

// Credit returns what a client has in this partition and what of it is used; client 0 is
// the total.
func (l *Limits) Credit(n uint32) (here, used int64) {
	if int(n) >= len(l.clients) {
		return 0, 0
	}
	return l.clients[n].here, l.clients[n].open + l.clients[n].executed
}

// bitmap has rows of bits.
type bitmap struct {
	words []uint64
	row   int
}

func words(bits int) int { return (bits + 63) / 64 }

func newBitmap(rows, n int) bitmap { return bitmap{make([]uint64, rows*words(n)), words(n)} }

func (b *bitmap) has(row, n uint32) bool { return b.words[int(row)*b.row+int(n>>6)]>>(n&63)&1 != 0 }

func (b *bitmap) set(row, n uint32, on bool) {
	w := &b.words[int(row)*b.row+int(n>>6)]
	*w &^= 1 << (n & 63)
	if on {
		*w |= 1 << (n & 63)
	}
}

// places returns the size of a table: at most half of it is used.
func places(n int) uint32 { return 1 << bits.Len32(uint32(2*n-1)) }
