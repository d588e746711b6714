package fix

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// QuickFIX's acceptance scripts are run by e2e/fix. Here is what they leave out.

// What a report was is made again byte by byte, but for PossDupFlag, SendingTime and
// OrigSendingTime, and with them BodyLength and CheckSum.
func TestResentReportIsTheSame(t *testing.T) {
	for _, v := range []Version{FIX42, FIX44, FIXT11} {
		w := newWorld(t, Profile{ID: ID{Version: v}}, Config{})
		w.logon("")
		first := w.send("D", w.order("o1"))
		expect(t, first, "|35=8|34=2|")
		at := w.stamp(0)
		w.pass(time.Second)
		again := w.send("2", "7=2|16=0|")
		expect(t, again, "|43=Y|")
		if !strings.Contains(again[0], "|122="+at+"|") {
			t.Errorf("%s: OrigSendingTime of %s is not %s", v, again[0], at)
		}
		if a, b := strip(first[0]), strip(again[0]); a != b {
			t.Errorf("%s: resent as\n%s, was\n%s", v, b, a)
		}
	}
}

func strip(m string) string {
	var keep []string
	for _, f := range strings.Split(m, "|") {
		switch tag, _, _ := strings.Cut(f, "="); tag {
		case "9", "10", "43", "52", "122":
		default:
			keep = append(keep, f)
		}
	}
	return strings.Join(keep, "|")
}

// Reports made without a connection have their numbers, and arrive after the next logon.
func TestReportWithoutConnection(t *testing.T) {
	w := newWorld(t, Profile{}, Config{})
	w.logon("")
	w.link.Closed(errors.New("lost"))
	w.session.Report(w.now, &ExecutionReport{ReportedOrder: ReportedOrder{OrderID: []byte("1")}, ExecID: []byte("e1"), ExecType: '4', OrdStatus: '4'})
	w.connect()
	w.logon("") // has number 3: the peer sees a gap
	expect(t, w.send("2", "7=2|16=2|"), "|35=8|34=2|43=Y|")
}

// The text of a refusal has tag, value and what is allowed.
func TestRefusalsName(t *testing.T) {
	for _, c := range []struct {
		name, msgType, fields string
		want                  []string
	}{
		{"value", "D", "11=a|55=ACME|54=z|60=20260101-00:00:00|38=100|40=1|", []string{"35=3|", `tag 54 (Side) is "z"; allowed: a code of the standard`, "|371=54|372=D|373=5|"}},
		{"missing", "D", "11=a|55=ACME|60=20260101-00:00:00|38=100|40=1|", []string{"35=3|", "Required tag missing: tag 54 (Side)", "|371=54|372=D|373=1|"}},
		{"number", "D", "11=a|55=ACME|54=1|60=20260101-00:00:00|38=1e3|40=1|", []string{`tag 38 (OrderQty) is "1e3"`, "373=6|"}},
		{"time", "D", "11=a|55=ACME|54=1|60=20260231-00:00:00|38=1|40=1|", []string{`tag 60 (TransactTime) is "20260231-00:00:00"`, "373=6|"}},
		{"group", "D", "11=a|55=ACME|54=1|60=20260101-00:00:00|38=1|40=1|78=2|79=x|80=1|", []string{`tag 78 (NoAllocs) is "2"; allowed: 1, the entries there are`, "373=16|"}},
		{"group entry", "D", "11=a|55=ACME|54=1|60=20260101-00:00:00|38=1|40=1|78=1|79=x|79=y|80=1|", []string{"tag 78 (NoAllocs)", "373=16|"}},
		{"group order", "D", "11=a|55=ACME|54=1|60=20260101-00:00:00|38=1|40=1|78=1|80=1|79=x|", []string{"tag 80 (AllocQty)", "allowed: tag 79 as the first of an entry", "373=14|"}},
		{"group twice", "D", "11=a|55=ACME|54=1|60=20260101-00:00:00|38=1|40=1|78=1|79=x|80=1|80=2|", []string{"tag 80 (AllocQty)", "once in an entry", "373=13|"}},
		{"user-defined", "0", "5001=x|", []string{"Invalid tag number: tag 5001", "373=0|"}},
		{"resend range", "2", "7=9|16=3|", []string{`tag 7 (BeginSeqNo) is "9"`, "373=5|"}},
		{"resend end", "2", "7=1|16=-1|", []string{`tag 16 (EndSeqNo) is "-1"`, "373=5|"}},
		{"business", "H", "11=a|55=ACME|54=1|", []string{"35=j|", "58=Unknown order|", "379=x|380=1|"}},
		{"not taken", "E", "", []string{"35=j|", `Unsupported Message Type: tag 35 (MsgType) is "E"`, "380=3|"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, Profile{}, Config{})
			w.logon("")
			got := w.send(c.msgType, c.fields)
			expect(t, got, c.want[0])
			for _, want := range c.want {
				if !strings.Contains(got[0], want) {
					t.Errorf("received %s, expected it to have %s", got[0], want)
				}
			}
			expect(t, w.send("1", "112=still there|"), "|112=still there|")
		})
	}
}

// User-defined tags and data fields with any bytes pass in orders.
func TestOrderFields(t *testing.T) {
	w := newWorld(t, Profile{}, Config{})
	w.logon("")
	expect(t, w.send("D", w.order("o1")+"5001=x|9999=y|354=5|355=a|b=c|"), "|11=o1|")
	expect(t, w.send("D", w.order("o2")+"354=900|355=abc|"), "|11=o2|") // too long: a value like others
	expect(t, w.send("F", "11=c1|41=o1|55=ACME|54=1|60="+w.stamp(0)+"|38=1|"), "|434=1|")
	expect(t, w.send("G", "41=o1|"+w.order("r1")), "|434=2|")
}

func TestAuthentication(t *testing.T) {
	auth := func(_ *Session, _ *Link, user, password []byte) error {
		if string(user) != "u" || string(password) != "p" {
			return errors.New("tags 553 and 554: unknown user or wrong password")
		}
		return nil
	}
	for _, v := range []Version{FIX42, FIX44, FIXT11} {
		w := newWorld(t, Profile{ID: ID{Version: v}}, Config{Authenticate: auth})
		extra := ""
		if v == FIXT11 {
			extra = "1137=9|"
		}
		expect(t, w.send("A", "98=0|108=30|553=u|554=wrong|"+extra))
		if err := w.link.Err(); !errors.Is(err, ErrLogon) || !strings.Contains(err.Error(), "wrong password") {
			t.Fatalf("%s: the link ended with %v", v, err)
		}
		if in, out := w.store.Next(); in != 1 || out != 1 {
			t.Errorf("%s: a refused logon took numbers: %d, %d", v, in, out)
		}
		w.connect()
		w.seq = 1
		w.logon("553=u|554=p|")
	}
}

// Logons that are refused get no answer, take no number, and the event has the reason.
func TestLogonRefused(t *testing.T) {
	for _, c := range []struct{ fields, want string }{
		{"98=0|108=0|", `tag 108 (HeartBtInt) is "0"; allowed: 1..3600`},
		{"98=0|108=3601|", `tag 108 (HeartBtInt) is "3601"`},
		{"98=1|108=30|", `tag 98 (EncryptMethod) is "1"; allowed: 0`},
		{"98=0|", "Required tag missing: tag 108 (HeartBtInt)"},
		{"98=0|108=30|141=x|", `tag 141 (ResetSeqNumFlag) is "x"; allowed: Y, N`},
	} {
		w := newWorld(t, Profile{}, Config{})
		expect(t, w.send("A", c.fields))
		if err := w.link.Err(); !errors.Is(err, ErrLogon) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("the link ended with %v, expected %s", err, c.want)
		}
		if in, out := w.store.Next(); in != 1 || out != 1 || w.session.LoggedOn() {
			t.Errorf("a refused logon took numbers (%d, %d) or a connection", in, out)
		}
	}
	w := newWorld(t, Profile{}, Config{})
	w.seq = 2
	expect(t, w.send("A", "98=0|108=30|141=Y|"))
	if err := w.link.Err(); err == nil || !strings.Contains(err.Error(), "tag 34 (MsgSeqNum) is 2; allowed: 1 with tag 141") {
		t.Errorf("the link ended with %v", err)
	}
}

// Numbers go on with the next connection; a number that was used is refused.
func TestNumbersOutliveTheConnection(t *testing.T) {
	w := newWorld(t, Profile{}, Config{})
	w.logon("")
	expect(t, w.send("D", w.order("o1")), "|34=2|")
	w.connect()
	w.logon("")
	expect(t, w.send("D", w.order("o2")), "|34=4|")
	w.connect()
	w.seq = 2
	expect(t, w.send("A", "98=0|108=30|"), "MsgSeqNum too low, expecting 5 but received 2")
	if w.link.Err() == nil {
		t.Error("the connection did not end")
	}
	w.connect()
	w.seq = 1
	w.logon("141=Y|")
	expect(t, w.send("D", w.order("o3")), "|34=2|")
}

// What is kept behind a gap is bounded; what did not fit is asked for again.
func TestGapIsBounded(t *testing.T) {
	w := newWorld(t, Profile{}, Config{Limits: Limits{GapMessages: 4}})
	w.logon("")
	w.seq = 3
	expect(t, w.send("D", w.order("o3")), "|35=2|34=2|") // asks for 2
	for i := 4; i < 10; i++ {
		expect(t, w.send("D", w.order(fmt.Sprint("o", i))))
	}
	if n := len(w.session.gap.held); n != 4 {
		t.Errorf("%d messages are kept, allowed: 4", n)
	}
	got := w.raw(w.message(2, "D", w.order("o2")+"")) // 2, then 3 to 6 of those kept
	expect(t, got, "|11=o2|", "|11=o3|", "|11=o4|", "|11=o5|", "|11=o6|")
	expect(t, w.send("0", ""), "|7=7|16=0|")
	if w.desk.orders != 5 {
		t.Errorf("%d orders arrived, expected 5", w.desk.orders)
	}
}

// ResendRequests behind a gap are answered, and kept within the same bound.
func TestResendRequestsBehindGap(t *testing.T) {
	w := newWorld(t, Profile{}, Config{Limits: Limits{GapMessages: 4}})
	w.logon("")
	w.seq = 9
	expect(t, w.send("2", "7=1|16=0|"), "|35=4|34=1|43=Y|", "|35=2|34=2|")
	for range 20 {
		expect(t, w.send("2", "7=1|16=0|"), "|35=4|34=1|43=Y|")
	}
	if n := len(w.session.gap.held); n != 4 {
		t.Errorf("%d messages are kept, allowed: 4", n)
	}
}

// What was asked for on a connection that is lost is asked for again on the next one, in
// both directions.
func TestGapsEndWithTheConnection(t *testing.T) {
	w := newWorld(t, Profile{}, Config{})
	w.logon("")
	for i := range 1000 {
		w.send("D", w.order(fmt.Sprint("o", i)))
	}
	w.seq += 3
	expect(t, w.send("0", ""), "|35=2|")
	w.out.slow = true
	w.link.Receive(w.now, w.message(w.seq, "2", "7=1|16=0|"))
	if !w.session.resending.active {
		t.Fatal("the resend is over, expected it to wait for the reader")
	}
	w.connect()
	expect(t, w.send("A", "98=0|108=30|"), "|35=A|", "|35=2|")
	expect(t, w.send("2", "7=1002|16=0|"), "|34=1002|43=Y|")
}

// A gap that is not filled is asked for again, and ends the session in the end.
func TestGapIsNotForever(t *testing.T) {
	w := newWorld(t, Profile{}, Config{})
	w.logon("")
	w.seq = 5
	expect(t, w.send("0", ""), "|35=2|")
	asked := 1
	for range 12 {
		for _, m := range w.pass(10 * time.Second) {
			if strings.Contains(m, "|35=2|") {
				asked++
			}
		}
		if w.link.Err() != nil {
			break
		}
		w.send("0", "")
	}
	if asked != maxTries || w.link.Err() == nil || !errors.Is(w.link.Err(), errNoAnswer) {
		t.Errorf("asked %d times, expected %d; the link ended with %v", asked, maxTries, w.link.Err())
	}
}

// A peer that does not read gets a Logout at the bound; a long resend waits for it.
func TestSlowReader(t *testing.T) {
	w := newWorld(t, Profile{}, Config{Limits: Limits{Unsent: 4 << 10}})
	w.logon("")
	w.out.slow = true
	for i := 0; w.link.Err() == nil && i < 1000; i++ {
		w.seq++
		w.link.Receive(w.now, w.message(w.seq-1, "D", w.order(fmt.Sprint("o", i))))
	}
	if n := len(w.out.b); n < 4<<10 || n > 8<<10 {
		t.Errorf("%d bytes are unread, expected little more than 4096", n)
	}
	if w.link.Err() == nil || !strings.Contains(string(w.out.b), "58=too slow: session FIX.4.4:BANK->GRID") {
		t.Fatalf("the link ended with %v", w.link.Err())
	}

	w = newWorld(t, Profile{}, Config{})
	w.logon("")
	for i := range 2000 {
		w.send("D", w.order(fmt.Sprint("o", i)))
	}
	w.out.slow = true
	w.seq++
	w.link.Receive(w.now, w.message(w.seq-1, "2", "7=1|16=0|"))
	if n := len(w.out.b); n < resendRoom || n > resendRoom+4<<10 {
		t.Fatalf("%d bytes were resent at once, expected little more than %d", n, resendRoom)
	}
	w.session.Report(w.now, &ExecutionReport{ExecID: []byte("new"), ExecType: '4', OrdStatus: '4'})
	var all []string
	for i := 0; w.session.resending.active; i++ {
		all = append(all, w.received()...)
		w.link.Tick(w.now)
	}
	all = append(all, w.received()...)
	if len(all) != 2002 || !strings.Contains(all[0], "|36=2|123=Y|") || !strings.Contains(all[2001], "|34=2002|43=Y|") {
		t.Errorf("%d messages were resent, the last %s", len(all), all[len(all)-1])
	}
}

// The memory of a store is bounded, and older messages become gap fills.
func TestMemoryStoreIsBounded(t *testing.T) {
	w := newWorld(t, Profile{}, Config{})
	w.store = NewMemory(2 << 10)
	w.session.store = w.store
	w.store.Bind(w.session)
	w.logon("")
	for i := range 100 {
		w.send("D", w.order(fmt.Sprint("o", i)))
	}
	if w.store.bytes > 2<<10 || w.store.count > 20 {
		t.Errorf("%d messages of %d bytes are kept, allowed: 2048 bytes", w.store.count, w.store.bytes)
	}
	got := w.send("2", "7=1|16=0|")
	if !strings.Contains(got[0], "|35=4|34=1|43=Y|") || !strings.Contains(got[len(got)-1], "|11=o99|") || len(got) != w.store.count+1 {
		t.Errorf("resent %q", got)
	}
}

// The other side's silence is noticed, whether or not it answered before.
func TestSilence(t *testing.T) {
	w := newWorld(t, Profile{}, Config{})
	w.logon("")
	got := w.pass(36 * time.Second)
	expect(t, got, "|35=0|", "|35=1|")
	w.pass(30 * time.Second)
	if !errors.Is(w.link.Err(), ErrTimeout) {
		t.Errorf("the link ended with %v, expected a time-out", w.link.Err())
	}
	w.connect()
	w.pass(5 * time.Second)
	if err := w.link.Err(); !errors.Is(err, ErrTimeout) || !errors.Is(err, ErrLogon) {
		t.Errorf("a connection without a Logon ended with %v", err)
	}
}

// A session ends in order when the acceptor wants it to.
func TestLogoutByAcceptor(t *testing.T) {
	w := newWorld(t, Profile{}, Config{})
	w.logon("")
	w.session.Logout(w.now, "end of day")
	expect(t, w.received(), "|58=end of day|")
	expect(t, w.send("D", w.order("o1"))) // not handled any more
	expect(t, w.raw(w.message(3, "5", "")))
	if !errors.Is(w.link.Err(), ErrLogout) || w.desk.orders != 0 {
		t.Errorf("the link ended with %v, %d orders arrived", w.link.Err(), w.desk.orders)
	}
	w.connect()
	w.seq = 4
	w.logon("") // 2 and 3 were not handled: they are asked for
	if in, _ := w.store.Next(); in != 2 {
		t.Errorf("number %d is expected, want 2", in)
	}
}

// A message of FIX 5.0 SP2 may say its version, which is that of the session.
func TestApplVerID(t *testing.T) {
	w := newWorld(t, Profile{ID: ID{Version: FIXT11}}, Config{})
	w.logon("")
	order := w.order("o1")
	for _, c := range []struct{ header, want string }{
		{"", "|35=8|"},
		{"1128=9|", "|35=8|"},
		{"1128=6|", `|58=Invalid or unsupported application version: tag 1128 (ApplVerID) is "6"; allowed: 9, that of the session, or no such field|371=1128|372=D|373=18|`},
		{"1128=x|", "|371=1128|372=D|373=5|"},
		{"1128=|", "|371=1128|372=D|373=4|"},
	} {
		expect(t, w.send("D", c.header+order), c.want)
	}
	expect(t, w.send("0", "1128=9|"))
	if w.desk.orders != 2 {
		t.Errorf("%d orders were taken, want 2", w.desk.orders)
	}
	for _, logon := range []string{"98=0|108=30|", "98=0|108=30|1137=8|"} {
		w := newWorld(t, Profile{ID: ID{Version: FIXT11}}, Config{})
		expect(t, w.send("A", logon))
		if why, _ := LogonFailure(w.link.Err()); why != LogonFields {
			t.Errorf("a Logon with %q ended with %v", logon, w.link.Err())
		}
	}
}
