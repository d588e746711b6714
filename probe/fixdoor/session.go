package fixdoor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

// Name says which session it is.
type Name struct {
	Version        string // BeginString (8)
	Sender, Target string // CompIDs of this side and of the gateway
}

func (n Name) String() string { return n.Version + ":" + n.Sender + "->" + n.Target }

// Session is one publishing thread's. It is for one goroutine.
type Session struct {
	door      *Door
	name      Name
	user      login
	partition wire.PartitionID

	c       conn
	at      int    // of the door's addresses: the next one
	in, out uint64 // the next number of the gateway, and of this side
	day     int64  // UTC, in which the numbers began
	asked   uint64 // the gateway's number that showed a gap; 0: none is being filled

	buf         []byte // read
	have        int    // bytes in buf
	write, body []byte
	pending     pending

	// Reconnects are how often it logged on again.
	Reconnects int
}

// pending is the order without a report.
type pending struct {
	seq     uint64 // its MsgSeqNum; 0: it was not sent yet
	order   []byte // as the maker made it
	id      []byte // ClOrdID
	first   []byte // SendingTime when it was sent first
	done    bool
	receipt load.Receipt
	refused error
}

// refusedError is an order that the grid refuses for good.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return "refused: " + e.text }

// errUnanswered is an order whose fate the session does not know.
var errUnanswered = errors.New("no ExecutionReport in time")

// Fate implements load.Submitter.
func (x *Session) Fate(err error) load.Fate {
	var refused *refusedError
	if errors.As(err, &refused) {
		return load.Rejected
	}
	return load.Unknown
}

// Submit implements load.Submitter: it returns when the order's ExecutionReport was read. The report does not say how
// many copies hold the order, and the receipt has none.
func (x *Session) Submit(ctx context.Context, fix []byte) (load.Receipt, error) {
	until := time.Now().Add(x.door.cfg.Timeout)
	p := &x.pending
	*p = pending{order: append(p.order[:0], fix...), id: append(p.id[:0], fixorder.Value(fix, "\x0111=")...), first: p.first[:0]}
	var lost error
	for {
		if x.c == nil {
			if err := x.resume(ctx, until); err != nil {
				return load.Receipt{}, errors.Join(lost, err)
			}
		}
		err := x.send()
		if err == nil {
			err = x.await(ctx, until)
		}
		switch {
		case p.done:
			return p.receipt, p.refused
		case err == nil || errors.Is(err, errUnanswered):
			return load.Receipt{}, errors.Join(lost, fmt.Errorf("session %s: %w", x.name, errUnanswered))
		case ctx.Err() != nil:
			return load.Receipt{}, ctx.Err()
		}
		lost = err
		x.drop()
	}
}

// send writes the order, once: from then on it has a number, and the gateway asks for it if it does not have it.
func (x *Session) send() (err error) {
	p := &x.pending
	if p.seq != 0 {
		return nil
	}
	p.first = append(p.first, fixorder.Value(p.order, "\x0152=")...)
	if x.write, err = fixorder.Readdress(x.write[:0], p.order, &fixorder.Address{Sender: x.name.Sender, Target: x.name.Target, Seq: x.out}); err != nil {
		p.done, p.refused = true, &refusedError{"not sent: " + err.Error()}
		return err
	}
	p.seq = x.out
	x.out++
	_, err = x.c.Write(x.write)
	return err
}

// await reads until the order has its report, the time is over or the connection ends.
func (x *Session) await(ctx context.Context, until time.Time) error {
	for !x.pending.done {
		err := x.read()
		if errors.Is(err, errTick) {
			if ctx.Err() != nil || time.Now().After(until) {
				return errUnanswered
			}
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read waits for bytes once, and handles the messages that are whole.
func (x *Session) read() error {
	if err := x.pull(); err != nil {
		return err
	}
	return x.handle()
}

// pull waits for bytes once.
func (x *Session) pull() error {
	if x.have == len(x.buf) {
		x.buf = append(x.buf, make([]byte, max(4<<10, len(x.buf)))...)
	}
	n, err := x.c.Read(x.buf[x.have:])
	x.have += n
	return err
}

// handle handles the messages that are whole.
func (x *Session) handle() error {
	rest := x.buf[:x.have]
	for {
		m, after, err := next(rest)
		if err != nil {
			return err
		}
		if after == nil {
			break
		}
		rest = after
		if err := x.receive(&m); err != nil {
			return err
		}
	}
	x.have = copy(x.buf, rest)
	return nil
}

// receive handles a message.
func (x *Session) receive(m *message) error {
	switch {
	case m.kind == 'A' && m.seq > x.in, m.kind == '2' && m.seq != x.in, m.kind == '1' && m.seq > x.in:
		// Their number does not decide: both sides may have a gap.
		if err := x.session(m); err != nil {
			return err
		}
		if m.seq > x.in {
			return x.askFor(m.seq)
		}
		return nil
	case m.kind == '4' && string(m.get("\x01123=")) != "Y":
		return x.fill(m)
	case m.seq > x.in:
		return x.askFor(m.seq) // it comes again
	case m.seq < x.in && m.possDup:
		return nil
	case m.seq < x.in:
		return fmt.Errorf("session %s: MsgSeqNum (34) of the gateway is %d; allowed: %d, or PossDupFlag: does another program use the session?", x.name, m.seq, x.in)
	}
	x.in = m.seq + 1
	if x.in > x.asked {
		x.asked = 0
	}
	switch m.kind {
	case '8', '9':
		return x.report(m)
	case '3', 'j':
		if p := &x.pending; p.seq != 0 && string(m.get("\x0145=")) == strconv.FormatUint(p.seq, 10) {
			p.done, p.refused = true, &refusedError{string(m.get("\x0158="))}
		}
		return nil
	case '4':
		return x.fill(m)
	}
	return x.session(m)
}

// session handles what the session layer answers.
func (x *Session) session(m *message) error {
	switch m.kind {
	case '1':
		return x.say("0", "112="+string(m.get("\x01112="))+"\x01")
	case '2':
		return x.resend(m)
	case '5':
		return fmt.Errorf("session %s: the gateway logged out: %.200s", x.name, m.get("\x0158="))
	}
	return nil // a heartbeat, a Logon
}

// askFor asks for what the gateway sent and this side did not get.
func (x *Session) askFor(seq uint64) error {
	if x.asked != 0 {
		return nil
	}
	x.asked = seq
	return x.say("2", "7="+strconv.FormatUint(x.in, 10)+"\x0116=0\x01")
}

// fill takes a SequenceReset.
func (x *Session) fill(m *message) error {
	n, err := number(m.get("\x0136="))
	if err != nil || n < x.in {
		return fmt.Errorf("session %s: NewSeqNo (36) of the gateway is %.20q; allowed: %d or more", x.name, m.get("\x0136="), x.in)
	}
	if x.in = n; x.in > x.asked {
		x.asked = 0
	}
	return nil
}

// resend answers a ResendRequest: the order without a report is sent again, everything else is filled.
func (x *Session) resend(m *message) error {
	from, err1 := number(m.get("\x017="))
	to, err2 := number(m.get("\x0116="))
	if err := errors.Join(err1, err2); err != nil || from == 0 {
		return fmt.Errorf("session %s: ResendRequest of the gateway has BeginSeqNo (7) %.20q and EndSeqNo (16) %.20q; allowed: numbers", x.name, m.get("\x017="), m.get("\x0116="))
	}
	if to == 0 || to >= x.out {
		to = x.out - 1
	}
	x.write = x.write[:0]
	if p := &x.pending; p.seq >= from && p.seq <= to && !p.done {
		x.fillFor(from, p.seq)
		x.body = appendStamp(x.body[:0], time.Now())
		var err error
		a := fixorder.Address{Sender: x.name.Sender, Target: x.name.Target, Seq: p.seq, Sending: x.body, First: p.first}
		if x.write, err = fixorder.Readdress(x.write, p.order, &a); err != nil {
			return err
		}
		from = p.seq + 1
	}
	x.fillFor(from, to+1)
	_, err := x.c.Write(x.write)
	return err
}

// fillFor appends a gap fill in place of the numbers from..next-1, if there are any.
func (x *Session) fillFor(from, next uint64) {
	if from < next {
		x.write = x.appendMessage(x.write, "4", from, appendStamp(nil, time.Now()), "123=Y\x0136="+strconv.FormatUint(next, 10)+"\x01")
	}
}

// say sends a message with the next number.
func (x *Session) say(kind, fields string) error {
	x.write = x.appendMessage(x.write[:0], kind, x.out, nil, fields)
	x.out++
	_, err := x.c.Write(x.write)
	return err
}

// report takes what became of an order. Of another one than that which waits it is late, and nothing.
func (x *Session) report(m *message) error {
	p := &x.pending
	if p.done || p.seq == 0 || !bytes.Equal(m.get("\x0111="), p.id) {
		return nil
	}
	state := string(m.get("\x01150="))
	switch {
	case m.kind == '9' || state == "8":
		p.done, p.refused = true, &refusedError{fmt.Sprintf("OrdRejReason (103) %s: %s", m.get("\x01103="), m.get("\x0158="))}
		return nil
	case state != "0" && state != "6" && state != "E": // New, Pending Cancel, Pending Replace
		return nil
	}
	r, partition, err := place(m.get("\x0137="))
	if err != nil || partition != x.partition.String() {
		return fmt.Errorf("session %s: OrderID (37) is %.40q; allowed: an entry of partition %s, as %s/17@3", x.name, m.get("\x0137="), x.partition, x.partition)
	}
	p.done, p.receipt = true, r
	return nil
}

// place reads an OrderID, as p1/17@3: partition, entry, epoch.
func place(id []byte) (r load.Receipt, partition string, err error) {
	before, rest, ok1 := bytes.Cut(id, []byte("/"))
	seq, epoch, ok2 := bytes.Cut(rest, []byte("@"))
	if !ok1 || !ok2 {
		return r, "", fmt.Errorf("%.40q has no entry and epoch", id)
	}
	if r.Seq, err = number(seq); err == nil {
		r.Epoch, err = number(epoch)
	}
	return r, string(before), err
}
