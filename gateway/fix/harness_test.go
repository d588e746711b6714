package fix

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// desk accepts every order.
type desk struct {
	orders  int
	refusal *Refusal
	report  ExecutionReport
}

func (d *desk) LoggedOn(*Session)         {}
func (d *desk) LoggedOut(*Session, error) {}
func (d *desk) Takes([]byte) bool         { return false }
func (d *desk) NewOrder(s *Session, o *NewOrderSingle) *Refusal {
	d.orders++
	if d.refusal != nil {
		return d.refusal
	}
	now := o.Message.Now()
	d.report = ExecutionReport{
		ReportedOrder: ReportedOrder{OrderID: o.ClOrdID, ClOrdID: o.ClOrdID, Account: o.Account, Symbol: o.Symbol, Side: o.Side},
		ExecID:        o.ClOrdID, ExecType: '0', OrdStatus: '0', OrderQty: o.OrderQty, LeavesQty: o.OrderQty, Price: o.Price,
		OrdType: o.OrdType, TransactNs: now.Wall,
	}
	s.Report(now, &d.report)
	return nil
}
func (d *desk) Cancel(s *Session, c *CancelRequest) *Refusal {
	s.RejectCancel(c.Message.Now(), &CancelReject{ReportedOrder: ReportedOrder{ClOrdID: c.ClOrdID, OrigClOrdID: c.OrigClOrdID}, OrdStatus: '8', Reason: '1', Text: "Unknown order", TransactNs: c.Message.Now().Wall})
	return nil
}
func (d *desk) Replace(s *Session, r *ReplaceRequest) *Refusal {
	s.RejectCancel(r.Message.Now(), &CancelReject{ReportedOrder: ReportedOrder{ClOrdID: r.ClOrdID, OrigClOrdID: r.OrigClOrdID}, OrdStatus: '8', ToReplace: true, TransactNs: r.Message.Now().Wall})
	return nil
}
func (d *desk) Status(*Session, *StatusRequest) *Refusal {
	return &Refusal{Business: true, Why: UnknownID, Words: "Unknown order", RefID: "x"}
}
func (d *desk) MassCancel(*Session, *MassCancelRequest) *Refusal { return nil }
func (d *desk) Other(*Session, *Message) *Refusal                { return nil }

// output is what a counterparty receives. It reads all, unless it is slow.
type output struct {
	b    []byte
	slow bool
}

func (o *output) Out() []byte     { return o.b }
func (o *output) SetOut(b []byte) { o.b = b }
func (o *output) Buffered() int {
	if o.slow {
		return len(o.b)
	}
	return 0
}

// world is an acceptor with one session and a counterparty.
type world struct {
	t        testing.TB
	acceptor *Acceptor
	session  *Session
	store    *Memory
	desk     *desk
	link     *Link
	out      *output
	now      Now
	begin    string
	seq      uint64 // of the counterparty's next message
	events   []string
	after    func(op byte) // a step of play
}

var start = time.Date(2026, 11, 23, 14, 0, 0, 987_654_321, time.UTC)

func newWorld(t testing.TB, p Profile, cfg Config) *world {
	w := &world{t: t, store: NewMemory(1 << 20), desk: &desk{}, now: Now{Wall: start.UnixNano(), Mono: 1}, seq: 1}
	if p.Version == 0 {
		p.Version = FIX44
	}
	p.Acceptor, p.Initiator, w.begin = "GRID", "BANK", p.Version.String()
	cfg.Find = func(id ID) *Session {
		if id != p.ID {
			return nil
		}
		return w.session
	}
	cfg.Event = func(_ *Link, _ *Session, err error) { w.events = append(w.events, err.Error()) }
	var err error
	if w.acceptor, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	if w.session, err = w.acceptor.Session(p, w.store, w.desk); err != nil {
		t.Fatal(err)
	}
	w.connect()
	return w
}

// connect replaces the connection.
func (w *world) connect() {
	if w.link != nil {
		w.link.Closed(errors.New("replaced by the test"))
	}
	w.out = &output{}
	w.link = w.acceptor.Open(w.now, w.out)
}

// message makes a message with a number; | stands for SOH.
func (w *world) message(seq uint64, msgType, fields string) []byte {
	return w.sealed(fmt.Sprintf("35=%s|34=%d|49=BANK|52=%s|56=GRID|%s", msgType, seq, w.stamp(0), fields))
}

func (w *world) stamp(after time.Duration) string {
	return time.Unix(0, w.now.Wall).Add(after).UTC().Format("20060102-15:04:05.000")
}

func (w *world) sealed(body string) []byte {
	m := strings.ReplaceAll(fmt.Sprintf("8=%s|9=%d|%s", w.begin, len(body), body), "|", "\x01")
	return fmt.Appendf(nil, "%s10=%03d\x01", m, checkSum([]byte(m)))
}

// send sends the counterparty's next message and returns what came back, with | for SOH.
func (w *world) send(msgType, fields string) []string {
	w.seq++
	return w.raw(w.message(w.seq-1, msgType, fields))
}

func (w *world) raw(b []byte) []string {
	if n := w.link.Receive(w.now, b); n != len(b) {
		w.t.Fatalf("%d of %d bytes were consumed: %q", n, len(b), b)
	}
	return w.received()
}

func (w *world) received() (list []string) {
	for _, m := range bytes.SplitAfter(w.out.b, []byte("\x0110=")) {
		if len(list) > 0 && len(m) >= 4 { // CheckSum belongs to the message before
			list[len(list)-1] += strings.ReplaceAll(string(m[:4]), "\x01", "|")
			m = m[4:]
		}
		if len(m) > 0 {
			list = append(list, strings.ReplaceAll(string(m), "\x01", "|"))
		}
	}
	w.out.b = nil
	return list
}

// logon logs on and fails the test if there is no answer.
func (w *world) logon(fields string) {
	w.t.Helper()
	if w.begin == "FIXT.1.1" {
		fields += "1137=9|"
	}
	if got := w.send("A", "98=0|108=30|"+fields); len(got) == 0 || !strings.Contains(got[0], "|35=A|") {
		w.t.Fatalf("the Logon was answered by %q; events: %q", got, w.events)
	}
}

// pass lets time pass, in steps of 100 ms.
func (w *world) pass(d time.Duration) []string {
	for ; d > 0; d -= 100 * time.Millisecond {
		w.now.Wall += int64(100 * time.Millisecond)
		w.now.Mono += int64(100 * time.Millisecond)
		w.link.Tick(w.now)
	}
	return w.received()
}

func (w *world) order(id string) string {
	return "11=" + id + "|1=A17|21=1|55=ACME|54=1|60=" + w.stamp(0) + "|38=100|40=2|44=10.5|"
}

// expect compares the number of messages, and what each contains.
func expect(t testing.TB, got []string, want ...string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !strings.Contains(got[i], want[i]) {
			t.Fatalf("received %q, expected messages with %q", got, want)
		}
	}
}
