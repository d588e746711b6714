package fixorder

import (
	"bytes"
	"testing"
	"time"
)

// with is a sealed message with a change of its body.
func with(fix []byte, old, new string) []byte {
	begin := bytes.Index(fix, []byte("\x0135=")) + 1
	body := bytes.Replace(fix[begin:len(fix)-trailer], []byte(old), []byte(new), 1)
	return []byte(sealed(fix[:begin], body))
}

// TestCheckSet: what may be set may have any value or none, and everything else has to be what was sent.
func TestCheckSet(t *testing.T) {
	id := ID{Run: 7, Probe: 1}
	published, err := NewMaker(FIX42, id)
	if err != nil {
		t.Fatal(err)
	}
	trading, err := NewTrading(FIX44, id, []Book{{Symbol: "IBM", Tick: 5, Lot: 1, Low: 0, High: 100_000, Reference: 12_500, PriceDigits: 2}})
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]interface {
		Make(index, seqNum int64, created, sent time.Time) []byte
		CheckSet(index int64, fix []byte, tags []uint32) error
	}{"published": published, "trading": trading} {
		sent := bytes.Clone(m.Make(17, 18, time.Unix(1_700_000_000, 0), time.Unix(1_700_000_001, 0)))
		end := "\x0158="
		if name == "trading" {
			end = "\x0159="
		}
		for what, c := range map[string]struct {
			fix  []byte
			tags []uint32
			ok   bool
		}{
			"as sent":                  {sent, nil, true},
			"as sent, tags granted":    {sent, []uint32{10001, 1}, true},
			"a tag more":               {with(sent, end, "\x0110001=DESK-7"+end), []uint32{10001}, true},
			"a tag more, not granted":  {with(sent, end, "\x0110001=DESK-7"+end), []uint32{10002}, false},
			"another account":          {with(sent, "\x011=ACCT-00012345\x01", "\x011=ANOTHER\x01"), []uint32{1}, true},
			"another account, refused": {with(sent, "\x011=ACCT-00012345\x01", "\x011=ACCT-00012346\x01"), []uint32{10001}, false},
			"another order":            {with(sent, "\x0111=", "\x0111=X"), []uint32{10001}, false},
			"a check sum":              {append(bytes.Clone(with(sent, end, "\x0110001=D"+end))[:len(with(sent, end, "\x0110001=D"+end))-4], "000\x01"...), []uint32{10001}, false},
			"nothing":                  {nil, []uint32{10001}, false},
			"no end":                   {sent[:len(sent)-1], []uint32{10001}, false},
		} {
			if err := m.CheckSet(17, c.fix, c.tags); (err == nil) != c.ok {
				t.Errorf("%s, %s: %v, want it accepted: %v", name, what, err, c.ok)
			}
		}
		if err := m.CheckSet(18, sent, []uint32{10001}); err == nil {
			t.Errorf("%s: order 17 is taken for order 18", name)
		}
	}
}
