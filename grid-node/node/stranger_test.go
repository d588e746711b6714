package node

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
)

// stranger is a client made from docs/protocol.md alone: it uses nothing of grid-node/wire nor of client.
type stranger struct {
	t *testing.T
	c net.Conn
}

func visit(t *testing.T, address, grid string, role byte) *stranger {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s := &stranger{t, c}
	body := append([]byte("OGR1"), 4, 0, 4, 0, role, 0, 0, 0)
	body = append(body, make([]byte, 8)...) // bootID
	body = append(append(append(body, byte(len(grid))), grid...), 8)
	s.send(0x01, 0, append(append(body, "stranger"...), 0))
	return s
}

func (s *stranger) send(typ byte, partition uint16, body []byte) {
	s.t.Helper()
	f := binary.LittleEndian.AppendUint32(nil, uint32(8+len(body)))
	f = append(f, typ, 0)
	f = binary.LittleEndian.AppendUint16(f, partition)
	if _, err := s.c.Write(append(f, body...)); err != nil {
		s.t.Fatal(err)
	}
}

// frame is the next one, whole.
func (s *stranger) frame(want byte) []byte {
	s.t.Helper()
	_ = s.c.SetReadDeadline(time.Now().Add(5 * time.Minute)) // turns a hang into a failure
	head := make([]byte, 8)
	if _, err := io.ReadFull(s.c, head); err != nil {
		s.t.Fatal(err)
	}
	f := append(head, make([]byte, binary.LittleEndian.Uint32(head)-8)...)
	if _, err := io.ReadFull(s.c, f[8:]); err != nil {
		s.t.Fatal(err)
	}
	if f[4] != want {
		s.t.Fatalf("frame %#x, want %#x: %q", f[4], want, f)
	}
	return f
}

func u64(values ...uint64) (b []byte) {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// partitions of a Table, by rising id.
func (s *stranger) partitions() (ids []uint16) {
	s.t.Helper()
	s.send(0x05, 0, u64(9))
	f := s.frame(0x06)
	at := 20
	str := func() { at += 1 + int(f[at]) }
	for range binary.LittleEndian.Uint16(f[18:]) {
		ids = append(ids, binary.LittleEndian.Uint16(f[at:]))
		members := int(f[at+15])
		at += 17
		for range 2 * members {
			str()
		}
	}
	slices.Sort(ids)
	return ids
}

// session opens one and returns its slot and generation.
func (s *stranger) session(partition uint16) []byte {
	s.send(0x10, partition, u64(10, 0x0123456789abcdef, uint64(partition)+1, 0, 1))
	return s.frame(0x11)[16:24]
}

func (s *stranger) submit(partition uint16, epoch uint64, session []byte, clientSeq uint64, fix []byte) {
	s.send(0x20, partition, append(append(append(u64(epoch), session...), u64(clientSeq)...), fix...))
}

// TestStranger: the page suffices for a stranger to route, submit, read and be rejected.
func TestStranger(t *testing.T) {
	g := newGrid(t, 1, 2)
	g.up()
	s := visit(t, g.addrs[0], "", 1)
	if w := s.frame(0x02); w[20] != 1 || w[21] != 'g' {
		t.Fatalf("Welcome of a client that takes any grid: %q", w)
	}
	parts := s.partitions()
	if len(parts) != 2 {
		t.Fatalf("partitions %v", parts)
	}
	sessions, next := map[uint16][]byte{}, map[uint16]uint64{}
	for _, p := range parts {
		sessions[p], next[p] = s.session(p), 1
	}
	own := g.client()
	seqs := map[string]uint64{}
	used := map[uint16]int{}
	for i := range 40 {
		id := fmt.Sprintf("STRANGER-%d", i)
		p := parts[xxhash.Sum64String(id)%uint64(len(parts))]
		s.submit(p, 0, sessions[p], next[p], fix(id))
		next[p]++
		used[p]++
		seqs[id] = binary.LittleEndian.Uint64(s.frame(0x21)[16:])
		if want := own.RouteClOrdID([]byte(id)); uint16(want) != p {
			t.Errorf("%s belongs to %s, by the page to %d", id, want, p)
		}
		if o, err := own.GetByClOrdID(t.Context(), id); err != nil || o.ID.Seq != seqs[id] {
			t.Errorf("%s: %+v, %v", id, o, err)
		}
	}
	if len(used) != 2 {
		t.Errorf("orders went to %v", used)
	}
	p := parts[0]

	// Without a payload: refused, and the number is used up.
	s.submit(p, 0, sessions[p], next[p], nil)
	if r := s.frame(0x22); binary.LittleEndian.Uint16(r[32:]) != 1 {
		t.Errorf("an order without a payload: %q", r)
	}
	next[p]++
	// An epoch that the node does not know.
	s.submit(p, 1000, sessions[p], next[p], fix("NEWER"))
	if r := s.frame(0x23); binary.LittleEndian.Uint64(r[8:]) != next[p] || binary.LittleEndian.Uint64(r[16:]) >= 1000 {
		t.Errorf("an epoch newer than the node's: %q", r)
	}
	s.submit(p, 0, sessions[p], next[p], fix("NEWER"))
	s.frame(0x21)
	// Entry 1 is no order.
	s.send(0x30, p, append(u64(11, 1), 1, 1, 0, 0, 0, 0, 0, 0))
	if r := s.frame(0x31); r[32] != 1 {
		t.Errorf("Get of what is no order: status %d", r[32])
	}

	admin := visit(t, g.addrs[0], "g", 3)
	admin.frame(0x02)
	if got := admin.partitions(); !slices.Equal(got, parts) {
		t.Errorf("role 3 sees %v", got)
	}
	other := visit(t, g.addrs[0], "another", 1)
	if r := other.frame(0x03); binary.LittleEndian.Uint16(r[8:]) != 3 {
		t.Errorf("another grid: %q", r)
	}
}

// TestHashOnThePage: the example of the page is correct.
func TestHashOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("<!-- hash (\\S+) -->`(0x[0-9a-f]+)`").FindSubmatch(page)
	if m == nil {
		t.Fatal("docs/protocol.md has no example of the hash")
	}
	if got, err := strconv.ParseUint(string(m[2]), 0, 64); err != nil || got != xxhash.Sum64(m[1]) {
		t.Errorf("the page has %s for %s, it is %#x: %v", m[2], m[1], xxhash.Sum64(m[1]), err)
	}
}
