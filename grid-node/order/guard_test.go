package order

import (
	"bytes"
	"strings"
	"testing"
)

// TestGuardEntries: a payload is read as it was written, and what no primary writes is
// refused.
func TestGuardEntries(t *testing.T) {
	long := func(n int) []byte { return bytes.Repeat([]byte("x"), n) }
	for name, c := range map[string]struct {
		g    Guard
		want string
	}{
		"profile":           {Guard{Op: GuardProfile, Who: []byte("node"), Profile: []byte("{}")}, ""},
		"kill":              {Guard{Op: GuardKill, Scope: GuardTrader, Name: []byte("ann"), Who: []byte("bob"), Why: []byte("test")}, ""},
		"unkill all":        {Guard{Op: GuardUnkill, Scope: GuardAll, Who: []byte("bob"), Why: []byte("test")}, ""},
		"profile of naught": {Guard{Op: GuardProfile, Who: []byte("node")}, "size"},
		"profile too long":  {Guard{Op: GuardProfile, Who: []byte("node"), Profile: long(MaxGuard + 1)}, "size"},
		"other op":          {Guard{Op: 5, Scope: GuardAll, Who: []byte("bob"), Why: []byte("test")}, "op is 5"},
		"names with scope":  {Guard{Op: GuardNames, Scope: GuardAll, Who: []byte("bob")}, "scope is 5"},
		"other scope":       {Guard{Op: GuardKill, Scope: 6, Name: []byte("a"), Who: []byte("bob"), Why: []byte("test")}, "scope is 6"},
		"all with a name":   {Guard{Op: GuardKill, Scope: GuardAll, Name: []byte("a"), Who: []byte("bob"), Why: []byte("test")}, "nameLen is 1"},
		"no name":           {Guard{Op: GuardKill, Scope: GuardDesk, Who: []byte("bob"), Why: []byte("test")}, "nameLen is 0"},
		"name too long":     {Guard{Op: GuardKill, Scope: GuardDesk, Name: long(65), Who: []byte("bob"), Why: []byte("test")}, "nameLen is 65"},
		"no person":         {Guard{Op: GuardKill, Scope: GuardAll, Why: []byte("test")}, "whoLen is 0"},
		"no reason":         {Guard{Op: GuardKill, Scope: GuardAll, Who: []byte("bob")}, "whyLen is 0"},
	} {
		payload := c.g.Append(nil)
		e := Entry{Kind: KindGuard, Seq: 1, Size: uint32(HeaderSize + len(payload))}
		b := append(make([]byte, HeaderSize), payload...)
		e.Put(b)
		_, err := DecodeEntry(b, &e)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if c.want == "" && !bytes.Equal(ptr(GuardOf(payload)).Append(nil), payload) {
			t.Errorf("%s: read as %+v", name, GuardOf(payload))
		}
		for cut := range payload {
			e.Size = uint32(HeaderSize + cut)
			if e.Put(b); c.want == "" && c.g.Op != GuardProfile {
				if _, err := DecodeEntry(b, &e); err == nil {
					t.Errorf("%s: cut at %d of %d it was taken", name, cut, len(payload))
				}
			}
		}
	}
}

func ptr[T any](v T) *T { return &v }
