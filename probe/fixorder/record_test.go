package fixorder

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

func recordMaker(t testing.TB, v Version, r Record) *Maker {
	t.Helper()
	m, err := NewRecordMaker(v, r, ID{Run: 42, Probe: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// smallest are the shortest valid orders there can be, see
// grid-node/order/smallest_test.go.
var smallest = map[Version]int{FIX42: 114, FIX44: 109, FIX50: 110}

// The empty record is the shortest valid order plus its identification; no field can be left out.
// The other one has exactly eight more.
func TestRecordsAreOrders(t *testing.T) {
	for _, v := range Versions() {
		count := map[Record]int{}
		for _, r := range Records() {
			m := recordMaker(t, v, r)
			fix := bytes.Clone(m.Make(7, 3, someTime, someTime))
			var o order.Order
			if err := order.Parse(fix, &o); err != nil {
				t.Fatalf("FIX %s %s: %v\n%q", v, r, err, fix)
			}
			if got := string(fix[o.ClOrdIDOff:][:o.ClOrdIDLen]); got != (ID{Run: 42, Probe: 1}).ClOrdID(7) {
				t.Errorf("FIX %s %s: ClOrdID %s", v, r, got)
			}
			if len(fix) != RecordSize(v, r) {
				t.Errorf("FIX %s %s: %d bytes, RecordSize is %d", v, r, len(fix), RecordSize(v, r))
			}
			count[r] = bytes.Count(fix, []byte{1})
		}
		if count[EightFields] != count[Empty]+8 {
			t.Errorf("FIX %s: fields %v", v, count)
		}
		// 19 bytes of ClOrdID, 8 of MsgSeqNum, 4 of each time, and a third digit of BodyLength.
		if more := RecordSize(v, Empty) - smallest[v]; more != 19+8+4+4+1 {
			t.Errorf("FIX %s: the empty record has %d bytes more than the shortest order", v, more)
		}
	}
	if RecordSize(FIX42, "") != Size || RecordSize("5.0", Empty) != 0 || RecordSize(FIX42, "other") != 0 {
		t.Error("sizes of invalid records")
	}
}

func TestRecordMakerRefuses(t *testing.T) {
	if _, err := NewRecordMaker(FIX42, "9 fields", ID{}); err == nil || !strings.Contains(err.Error(), `record "9 fields": there are "empty" and "8 fields"`) {
		t.Errorf("%v", err)
	}
}

// Check detects every changed byte, in every record.
func TestMakerCheckSeesEveryByte(t *testing.T) {
	for _, r := range append(Records(), "") {
		fix := bytes.Clone(recordMaker(t, FIX42, r).Make(1003, 7, someTime, someTime))
		checker := recordMaker(t, FIX42, r)
		if err := checker.Check(1003, fix); err != nil {
			t.Fatalf("%s: %v", r, err)
		}
		for i := range fix {
			bad := bytes.Clone(fix)
			bad[i] ^= 1
			if checker.Check(1003, bad) == nil {
				t.Errorf("%s: byte %d (%q) changed and not detected", r, i, fix[i])
			}
		}
		for name, bad := range map[string][]byte{"nothing": nil, "cut": fix[:len(fix)-1], "longer": append(bytes.Clone(fix), 1)} {
			if checker.Check(1003, bad) == nil {
				t.Errorf("%s: %s is accepted", r, name)
			}
		}
		if checker.Check(1004, fix) == nil {
			t.Errorf("%s: another order is accepted", r)
		}
	}
	empty := recordMaker(t, FIX42, Empty).Make(1, 1, someTime, someTime)
	if recordMaker(t, FIX42, EightFields).Check(1, empty) == nil {
		t.Error("an empty record is accepted as one of eight fields")
	}
}

func TestRecordsAllocateNothing(t *testing.T) {
	m := recordMaker(t, FIX44, EightFields)
	i := int64(0)
	if n := testing.AllocsPerRun(2000, func() {
		i++
		m.Make(i, i, someTime, someTime)
	}); n != 0 {
		t.Errorf("%v allocations an order", n)
	}
}
