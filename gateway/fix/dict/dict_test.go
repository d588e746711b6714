package dict

import "testing"

// The tables are those of the standard: some facts of each, as its pages have them.
func TestTables(t *testing.T) {
	for _, c := range []struct {
		table    *Table
		version  string
		required []int // of NewOrderSingle
	}{
		{FIX42(), "4.2", []int{11, 21, 55, 54, 60, 40}},
		{FIX44(), "4.4", []int{11, 54, 60, 40}},
		{FIX50SP2(), "5.0 SP2", []int{11, 54, 60, 40}},
	} {
		m := c.table.Message([]byte("D"))
		if m == nil || m.Name != "NewOrderSingle" || m.Category != App {
			t.Fatalf("FIX %s: message D is %+v", c.version, m)
		}
		for _, tag := range c.required {
			if !contains(m.Required, tag) {
				t.Errorf("FIX %s: tag %d is not required in NewOrderSingle: %v", c.version, tag, m.Required)
			}
		}
		if g := Find(m.Groups, 386); g == nil || g.First != 336 || !g.Fields.Has(336) {
			t.Errorf("FIX %s: group 386 is %+v, expected entries that begin with 336", c.version, g)
		}
		if k := c.table.Kind(95); k != Length {
			t.Errorf("FIX %s: RawDataLength is of kind %d, expected Length", c.version, k)
		}
		if coded, ok := c.table.Coded(54, []byte("1")); !coded || !ok {
			t.Errorf("FIX %s: Side 1 is no code", c.version)
		}
		if coded, ok := c.table.Coded(54, []byte("z")); !coded || ok {
			t.Errorf("FIX %s: Side z is a code", c.version)
		}
		if c.table.Defined.Has(4000) || !c.table.Defined.Has(55) || c.table.Name(11) != "ClOrdID" {
			t.Errorf("FIX %s: tags 4000, 55 or the name of 11 are wrong", c.version)
		}
		if !c.table.Header.Fields.Has(34) || c.table.Header.Fields.Has(11) || !contains(c.table.Header.Required, 52) {
			t.Errorf("FIX %s: the header is %v", c.version, c.table.Header.Required)
		}
		if h := c.table.Message([]byte("8")); h == nil || h.Category != Other {
			t.Errorf("FIX %s: message 8 is %+v, expected one whose fields are not described", c.version, h)
		}
	}
}

func contains(list []int, tag int) bool {
	for _, v := range list {
		if v == tag {
			return true
		}
	}
	return false
}
