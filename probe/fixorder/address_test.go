package fixorder

import (
	"bytes"
	"testing"
	"time"
)

// An order through a session is the order that was made, but for what the session wrote.
func TestReaddress(t *testing.T) {
	id := ID{Run: 3}
	sent := time.Date(2026, 3, 4, 5, 6, 7, 8_000_000, time.UTC)
	for _, v := range Versions() {
		for _, r := range append(Records(), "") {
			m, err := NewRecordMaker(v, r, id)
			if err != nil {
				t.Fatal(err)
			}
			made := bytes.Clone(m.Make(17, 18, sent, sent))
			for name, a := range map[string]Address{
				"the same length": {Sender: "PROBE0000001", Target: "ORDERGRID", Seq: 5},
				"another length":  {Sender: "X", Target: "THE-GATEWAY", Seq: MaxSeqNum},
				"again":           {Sender: "X", Target: "THE-GATEWAY", Seq: 5, Sending: []byte("20260304-05:06:09.000"), First: []byte("20260304-05:06:07.008")},
			} {
				got, err := Readdress(nil, made, &a)
				if err != nil {
					t.Fatal(err)
				}
				if name == "the same length" && r == "" && (len(got) != Size || Check(got) != nil) {
					t.Errorf("FIX %s: %d bytes, %v", v, len(got), Check(got))
				}
				if !SentBy(got, a.Sender, a.Target) || SentBy(got, a.Sender, "ANOTHER") || SentBy(made, a.Sender, a.Target) {
					t.Errorf("FIX %s %q, %s: who sent it is not seen in %q", v, r, name, got)
				}
				if err := m.Check(17, Unaddressed(got, r)); err != nil {
					t.Errorf("FIX %s %q, %s: %v", v, r, name, err)
				}
				at := bytes.Index(got, []byte("\x0155="))
				broken := bytes.Clone(got)
				broken[at+4] ^= 1
				if m.Check(17, Unaddressed(broken, r)) == nil {
					t.Errorf("FIX %s %q, %s: another symbol is not seen", v, r, name)
				}
			}
		}
	}
	for _, bad := range []string{"", "hello", "8=FIX.4.4\x019=10\x0135=D\x0111=x\x0110=000\x01"} {
		if _, err := Readdress(nil, []byte(bad), &Address{}); err == nil {
			t.Errorf("%q is readdressed", bad)
		}
	}
}
