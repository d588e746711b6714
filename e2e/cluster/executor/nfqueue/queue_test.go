package nfqueue

import (
	"encoding/binary"
	"testing"

	"github.com/mdlayher/netlink"
)

// message is what the kernel sends for a packet.
func message(t testing.TB, attrs ...netlink.Attribute) []byte {
	t.Helper()
	body, err := netlink.MarshalAttributes(attrs)
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{2, 0, 0x23, 0x28}, body...)
}

func header(id uint32, hook byte) netlink.Attribute {
	return netlink.Attribute{Type: attrHeader, Data: append(binary.BigEndian.AppendUint32(nil, id), 0x08, 0x00, hook)}
}

func TestParsePacket(t *testing.T) {
	p, err := parsePacket(message(t, header(7, HookOut), netlink.Attribute{Type: 9, Data: []byte{1}}, netlink.Attribute{Type: attrPayload, Data: []byte("content")}))
	if err != nil || p.ID != 7 || p.Hook != HookOut || string(p.Content) != "content" {
		t.Errorf("%+v, %v", p, err)
	}
	for name, data := range map[string][]byte{
		"nothing": nil, "no attributes": {2, 0, 0, 0}, "no number": message(t, netlink.Attribute{Type: attrPayload, Data: []byte("x")}),
		"a short header": message(t, netlink.Attribute{Type: attrHeader, Data: []byte{1, 2, 3}}), "a length beyond the end": {2, 0, 0, 0, 200, 0, 1, 0},
	} {
		if _, err := parsePacket(data); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func FuzzParsePacket(f *testing.F) {
	f.Add(message(f, header(1, HookIn)))
	f.Fuzz(func(_ *testing.T, data []byte) { _, _ = parsePacket(data) })
}

func TestParseStatistics(t *testing.T) {
	text := " 9000  12345     2 1    65535     3     4       77  1\n 9001  12345     0 2    65535     0     0        0  1\n"
	got, err := parseStatistics(text, 9000)
	if want := (Statistics{Waiting: 2, Queued: 77, Overflow: 7}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{text, "", "nonsense\n"} {
		if _, err := parseStatistics(text, 1); err == nil {
			t.Errorf("an unbound queue is in %q", text)
		}
	}
}
