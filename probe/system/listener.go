package system

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// listener is one client.
type listener struct {
	fd       int
	partial  []byte
	last     map[uint64]uint64 // the last position, by subscription and partition
	got      account
	repeated int // positions that are not behind the last one
	told     int // messages that the gateway said it left out
	payload  int // bytes of data of every message; 0: any

	// inboxes are those of users that it hands each message on to.
	inboxes []inbox

	measured bool
	arrivals []arrival
	// faults for the control: the message to pass over and the one to take twice, counted from 1; 0: none.
	loses, repeats int
}

// inbox is a user's: the last message, and how many there were.
type inbox struct {
	last  [512]byte
	count int
}

// account counts messages, and sums up their places so that one in the place of another is seen.
type account struct {
	count int
	sum   uint64
}

func (a *account) add(partition uint32, seq uint64) {
	x := seq*0x9e3779b97f4a7c15 ^ uint64(partition+1)*0xbf58476d1ce4e5b9
	a.count++
	a.sum += x ^ x>>29
}

func (a *account) join(b account) { a.count, a.sum = a.count+b.count, a.sum+b.sum }

// arrival of a message at a client that is measured.
type arrival struct {
	index int
	at    time.Time
	due   time.Duration // as the payload says, since the step began; orders have none
}

// idPrefix begins the ClOrdIDs of orders that are timed; idDigits with the order's number follow.
const (
	idPrefix = "FAN-"
	idDigits = 10
)

// request opens a connection to a gateway's stream.
func request(addr, token string) []byte {
	return fmt.Appendf(nil, "GET /stream HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: ordergrid.bin.v1\r\nAuthorization: Bearer %s\r\n\r\n", addr, token)
}

// dial connects one client, and waits until all its subscriptions are known.
func dial(addr, token string, flushMs int, wants []string) (*listener, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close() //nolint:errcheck // the socket is kept by a number of its own
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	out := request(addr, token)
	for id, topic := range wants {
		out = masked(out, 0x1, fmt.Appendf(nil, `{"op":"subscribe","id":%d,"topics":%q,"flush_ms":%d}`, id, topic, flushMs))
	}
	if _, err := c.Write(out); err != nil {
		return nil, err
	}
	var got []byte
	for b := make([]byte, 16<<10); bytes.Count(got, []byte(`"op":"subscribed"`)) < len(wants) || got[len(got)-1] != '}'; {
		n, err := c.Read(b)
		if err != nil {
			return nil, fmt.Errorf("%w behind %.300q", err, got)
		}
		if got = append(got, b[:n]...); bytes.Contains(got, []byte(`"op":"error"`)) {
			return nil, fmt.Errorf("refused: %q", got[max(0, len(got)-300):])
		}
	}
	l := &listener{last: map[uint64]uint64{}}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	// A number of its own, so that the runtime does not wait for it too.
	return l, errors.Join(raw.Control(func(fd uintptr) { l.fd, err = unix.Dup(int(fd)) }), err)
}

// masked appends a frame of a client, with a mask of zeros.
func masked(dst []byte, opcode byte, payload []byte) []byte {
	dst = append(dst, 0x80|opcode)
	if len(payload) < 126 {
		dst = append(dst, 0x80|byte(len(payload)))
	} else {
		dst = binary.BigEndian.AppendUint16(append(dst, 0x80|126), uint16(len(payload)))
	}
	return append(append(dst, 0, 0, 0, 0), payload...)
}

// frame cuts a frame off; rest is nil when it is not whole.
func frame(b []byte) (opcode byte, payload, rest []byte, err error) {
	if len(b) < 4 {
		if len(b) < 2 || int(b[1])+2 > len(b) {
			return 0, nil, nil, nil
		}
	}
	if b[0]&0xf0 != 0x80 || b[1] > 126 {
		return 0, nil, nil, fmt.Errorf("frame begins with %#x, allowed: whole ones of less than 64 KiB", b[:2])
	}
	head, n := 2, int(b[1])
	if n == 126 {
		head, n = 4, int(binary.BigEndian.Uint16(b[2:]))
	}
	if len(b) < head+n {
		return 0, nil, nil, nil
	}
	return b[0] & 0xf, b[head : head+n], b[head+n:], nil
}

// received is a message as a client gets it.
type received struct {
	id, partition uint32
	seq           uint64
	index         int // of its payload, where that has one
	due           time.Duration
	data          []byte
}

// parseReceived reads one in ordergrid.bin.v1: of the log, or of a client.
func parseReceived(p []byte) (m received, err error) {
	bad := fmt.Errorf("a message of %d bytes: %.100q", len(p), p)
	if len(p) == 0 {
		return m, bad
	}
	switch p[0] {
	case 1:
		const fixed = 23
		if len(p) < fixed || len(p) < fixed+int(binary.BigEndian.Uint16(p[fixed-2:])) {
			return m, bad
		}
		m.id, m.partition, m.seq = binary.BigEndian.Uint32(p[1:]), binary.BigEndian.Uint32(p[5:]), binary.BigEndian.Uint64(p[9:])
		m.data = p[fixed+int(binary.BigEndian.Uint16(p[fixed-2:])):]
		return m, nil
	case userFrame:
		if m.id, m.data, err = cutUser(p); err != nil {
			return m, err
		}
		if m.index, m.due, err = parsePayload(m.data); err != nil {
			return m, err
		}
		m.partition, m.seq = userPartition, uint64(m.index)+1
		return m, nil
	}
	return m, bad
}

// message checks one, and returns how many bytes of data it has.
func (l *listener) message(p []byte, now time.Time) (data int, err error) {
	m, err := parseReceived(p)
	if err != nil {
		return 0, err
	}
	data = len(m.data)
	if l.payload > 0 && data != l.payload {
		return 0, fmt.Errorf("message %d has %d bytes of data, sent: %d", m.index, data, l.payload)
	}
	n := l.got.count + l.repeated + 1
	if l.loses > 0 && n == l.loses {
		l.loses = -1
		return data, nil
	}
	l.place(&m)
	for i := range l.inboxes {
		copy(l.inboxes[i].last[:], m.data)
		l.inboxes[i].count++
	}
	if n == l.repeats {
		l.place(&m)
	}
	if !l.measured {
		return data, nil
	}
	if m.partition == userPartition {
		l.arrivals = append(l.arrivals, arrival{m.index, now, m.due})
	} else if _, rest, ok := bytes.Cut(m.data, []byte(`"clOrdID":"`+idPrefix)); ok && len(rest) > idDigits {
		if index, err := strconv.Atoi(string(rest[:idDigits])); err == nil {
			l.arrivals = append(l.arrivals, arrival{index: index, at: now})
		}
	}
	return data, nil
}

// place takes the position of a message into account.
func (l *listener) place(m *received) {
	key := uint64(m.id)<<32 | uint64(m.partition)
	if m.seq <= l.last[key] {
		l.repeated++
		return
	}
	l.last[key] = m.seq
	l.got.add(m.partition, m.seq)
}

// text reads what is no message: of a gap, how many it is, or one where the gateway does not know.
func (l *listener) text(p []byte) error {
	type left struct {
		Count int `json:"count"`
	}
	var m struct {
		Op     string `json:"op"`
		Ranges []left `json:"ranges"`
		User   *left  `json:"user"`
	}
	if err := json.Unmarshal(p, &m); err != nil {
		return err
	}
	if m.Op != "gap" || len(m.Ranges) == 0 && m.User == nil {
		return fmt.Errorf("a client got %.300q", p)
	}
	if m.User != nil {
		m.Ranges = append(m.Ranges, *m.User)
	}
	for _, r := range m.Ranges {
		l.told += max(r.Count, 1)
	}
	return nil
}
