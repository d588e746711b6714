package selftest

import (
	"fmt"
	"net"
	"sync"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/clock"
)

// Server speaks a grid node's protocol to clients: one partition, one copy, a correct log of the
// accepted orders, and the latency of a Behaviour.
type Server struct {
	station station
	ln      net.Listener

	mu       sync.Mutex
	log      []byte // entries, padded
	offsets  []int  // of entry i+1 in log
	lastHash uint64
	conns    map[*socket]struct{}
	slots    uint32
	serving  sync.WaitGroup
}

// grid and member are the server's names.
const (
	gridName   = "selftest"
	memberName = "selftest-s0-0/0000000000000001"
	epoch      = 1
	window     = 64
	// roomBytes is for some 80,000 orders: growing it would be a stall.
	roomBytes = 32 << 20
	// maxChunk of log entries in one answer, in bytes.
	maxChunk = 256 << 10
)

// Serve starts a server on a free port of the loopback interface.
func Serve(b Behaviour) (*Server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("self-test server: %w", err)
	}
	s := &Server{station: station{b: b}, ln: ln, conns: map[*socket]struct{}{}, log: make([]byte, 0, roomBytes)}
	s.serving.Go(s.accept)
	return s, nil
}

// Address is host:port.
func (s *Server) Address() string { return s.ln.Addr().String() }

// Close ends all connections and waits for their goroutines.
func (s *Server) Close() error {
	err := s.ln.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.end()
	}
	s.mu.Unlock()
	s.serving.Wait()
	return err
}

func (s *Server) accept() {
	for {
		conn, err := s.ln.Accept()
		if err != nil {
			return // closed
		}
		c, err := newSocket(conn)
		if err != nil {
			continue // the client sees that it is closed
		}
		s.mu.Lock()
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		s.serving.Go(func() {
			// A thread of its own, for punctual wake-ups.
			if clock.Thread() == nil {
				s.serve(c)
			}
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
			c.close()
		})
	}
}

func (s *Server) serve(c *socket) {
	in, out := make([]byte, 0, 64<<10), make([]byte, 0, 64<<10)
	chunk := make([]byte, 64<<10)
	for {
		frame, rest, err := wire.Split(in)
		if err != nil {
			return
		}
		if frame == nil {
			n, err := c.read(chunk)
			if err != nil {
				return
			}
			in = append(in, chunk[:n]...)
			continue
		}
		if out, err = s.answer(out[:0], frame); err != nil {
			return
		}
		if err := c.write(out); err != nil {
			return
		}
		in = append(in[:0], rest...)
	}
}

// answer appends the answer to a frame; an error ends the connection.
func (s *Server) answer(out, frame []byte) ([]byte, error) {
	var req wire.Request
	switch t := wire.FrameType(frame); t {
	case wire.TypeHello:
		var m wire.Hello
		if err := wire.DecodeHello(frame, &m); err != nil {
			return nil, err
		}
		if wire.Negotiate(&m) == 0 {
			return nil, fmt.Errorf("versions %d..%d, this server speaks %d..%d", m.MinVersion, m.MaxVersion, wire.MinVersion, wire.Version)
		}
		return wire.AppendWelcome(out, &wire.Welcome{Version: wire.Negotiate(&m), MaxFrame: wire.MaxFrame, Window: window, Grid: []byte(gridName), Member: []byte(memberName)}), nil
	case wire.TypeTableRequest:
		if err := wire.DecodeRequest(frame, t, &req); err != nil {
			return nil, err
		}
		return wire.AppendTable(out, s.table(req.ReqID)), nil
	case wire.TypePing:
		if err := wire.DecodeRequest(frame, t, &req); err != nil {
			return nil, err
		}
		return wire.AppendRequest(out, wire.TypePong, &req), nil
	case wire.TypeOpenSession:
		var m wire.OpenSession
		if err := wire.DecodeOpenSession(frame, &m); err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.slots++
		slot := s.slots
		s.mu.Unlock()
		return wire.AppendSessionOpened(out, 0, &wire.SessionOpened{ReqID: m.ReqID, Slot: slot, Generation: 1, Window: window, Epoch: epoch}), nil
	case wire.TypeSubmit:
		return s.submit(out, frame)
	case wire.TypeReadLog:
		return s.readLog(out, frame)
	default:
		return nil, fmt.Errorf("frame type %v is not for this server", t)
	}
}

func (s *Server) table(reqID uint64) *wire.Table {
	return &wire.Table{ReqID: reqID, Partitions: 1, Parts: []wire.TablePart{{
		Epoch: epoch, Lineage: 1, NInSync: 1, Members: []wire.TableMember{{Address: []byte(s.Address()), Member: []byte(memberName)}},
	}}}
}

// submit accepts an order, waits until it is due, and acknowledges it.
func (s *Server) submit(out, frame []byte) ([]byte, error) {
	due := s.station.due(clock.Now())
	var m wire.Submit
	if err := wire.DecodeSubmit(frame, &m); err != nil {
		return nil, err
	}
	var o order.Order
	if err := order.Parse(m.Payload, &o); err != nil {
		return wire.AppendReject(out, 0, &wire.Reject{RequestID: m.ClientSeq, Slot: m.Slot, Code: wire.CodeBadFIX, ForType: wire.TypeSubmit, Tag: err.Tag, Text: []byte(err.Error())}), nil
	}
	seq := s.append(&m, o.Fields)
	clock.SleepUntil(due)
	return wire.AppendAck(out, 0, &wire.Ack{ClientSeq: m.ClientSeq, Seq: seq, Epoch: epoch, Slot: m.Slot, Copies: 1}), nil
}

func (s *Server) append(m *wire.Submit, f order.Fields) (seq uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := order.Entry{
		Size: uint32(order.HeaderSize + len(m.Payload)), Kind: order.KindOrder, Seq: uint64(len(s.offsets) + 1), PrevHash: s.lastHash,
		Epoch: epoch, Session: m.Slot, ClientSeq: m.ClientSeq, TimeNs: clock.Wall(clock.Now()).UnixNano(), Fields: f,
	}
	from := len(s.log)
	s.offsets = append(s.offsets, from)
	s.log = append(s.log, make([]byte, order.Padded(int(e.Size)))...)
	e.Put(s.log[from:])
	copy(s.log[from+order.HeaderSize:], m.Payload)
	s.lastHash = order.Hash(s.log[from : from+int(e.Size)])
	return e.Seq
}

func (s *Server) readLog(out, frame []byte) ([]byte, error) {
	var m wire.ReadLog
	if err := wire.DecodeReadLog(frame, &m); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last := uint64(len(s.offsets))
	chunk := wire.LogChunk{ReqID: m.ReqID, Epoch: epoch, CommitSeq: last, LastSeq: last, LastHash: s.lastHash, FirstSeq: m.FromSeq}
	if m.FromSeq <= last {
		from, to := s.offsets[m.FromSeq-1], len(s.log)
		for i := m.FromSeq; i < last; i++ { // whole entries only
			if s.offsets[i]-from > maxChunk {
				to = s.offsets[i]
				break
			}
		}
		chunk.Entries = s.log[from:to]
	}
	return wire.AppendLogChunk(out, 0, &chunk), nil
}
