package wire

import (
	"strings"
	"testing"
)

// TestTableLayout: a table has a layout or has none yet; what cannot be right is refused.
func TestTableLayout(t *testing.T) {
	member := TableMember{Address: []byte("10.0.0.1:7400"), Member: []byte("g-s0-0/00000000000000a1")}
	for _, test := range []struct {
		layout  Layout
		refused string
	}{
		{Layout{}, ""},
		{Layout{Revision: 7, Shards: 3, Open: 2, Removed: 1}, ""},
		{Layout{Revision: 1 << 63, Shards: MaxShards, Open: MaxShards, Removed: 65535}, ""},
		{Layout{Revision: 7, Shards: 0, Open: 0}, "layout.shards is 0, allowed: 1..4096"},
		{Layout{Revision: 7, Shards: MaxShards + 1, Open: 1}, "layout.shards is 4097, allowed: 1..4096"},
		{Layout{Revision: 7, Shards: 3, Open: 0}, "layout.open is 0, allowed: 1..layout.shards"},
		{Layout{Revision: 7, Shards: 3, Open: 4}, "layout.open is 4, allowed: 1..layout.shards"},
	} {
		f := AppendTable(nil, &Table{ReqID: 1, NShards: 3, Parts: []TablePart{{Epoch: 1, NInSync: 1, Members: []TableMember{member}}}, Layout: test.layout})
		m := Table{Layout: Layout{Revision: 99}} // of another frame
		err := DecodeTable(f, &m)
		switch {
		case test.refused == "" && (err != nil || m.Layout != test.layout || len(m.Parts) != 1):
			t.Errorf("%+v: decoded as %+v, %v", test.layout, m.Layout, err)
		case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
			t.Errorf("%+v: %v, want %q", test.layout, err, test.refused)
		}
	}
	f := AppendTable(nil, &Table{ReqID: 1, NShards: 3, Layout: Layout{Revision: 1, Shards: 1, Open: 1}})
	clear(f[len(f)-tableLayoutSize:][:8])
	if err := DecodeTable(f, &Table{}); err == nil || !strings.Contains(err.Error(), "layout.revision is 0, allowed: 1 or more") {
		t.Errorf("revision 0: %v", err)
	}
	if err := DecodeTable(append([]byte{byte(len(f) - 1)}, f[1:len(f)-1]...), &Table{}); err == nil {
		t.Error("half a layout was taken for one")
	}
}
