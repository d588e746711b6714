package history

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/probe/load"
)

func sample() *History {
	return &History{
		Scenario: "kill-primary", Target: "dev", Seed: 7, Nodes: []Node{{"a", "1:1"}},
		Streams: []Stream{{Node: -1, Sessions: 2, Orders: []load.Order{{T1: 1, T2: 2, T3: 3, Seq: 4, Epoch: 5, Copies: 2, Fate: load.Acked, Thread: 1}, {T1: 2}}}},
		Reads:   []Read{{Call: 1, Return: 2, Index: 1, Seq: 4}},
		Logs:    []Log{{Where: "a", Entries: []Entry{{Seq: 1, Hash: 2, Stream: NoOrder}, {Seq: 2, Prev: 2, Hash: 3}}}},
	}
}

func TestSavedAndLoadedIsTheSame(t *testing.T) {
	path := t.TempDir() + "/sub/h.gz"
	if err := sample().Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil || !reflect.DeepEqual(got, sample()) {
		t.Fatalf("%v\n%+v\n%+v", err, got, sample())
	}
}

func TestLoadRefuses(t *testing.T) {
	var good bytes.Buffer
	if err := sample().Write(&good); err != nil {
		t.Fatal(err)
	}
	bad := func(change func(*History)) []byte {
		h := sample()
		change(h)
		var b bytes.Buffer
		if err := h.Write(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for name, b := range map[string][]byte{
		"empty":              nil,
		"text":               []byte(strings.Repeat("not a history ", 10)),
		"only the magic":     []byte(magic),
		"cut short":          good.Bytes()[:good.Len()-9],
		"no gob":             append([]byte(magic), "\x1f\x8b\x08\x00garbage"...),
		"read of no stream":  bad(func(h *History) { h.Reads[0].Stream = 3 }),
		"read of no order":   bad(func(h *History) { h.Reads[0].Index = 2 }),
		"read at no node":    bad(func(h *History) { h.Reads[0].Node = 1 }),
		"negative index":     bad(func(h *History) { h.Reads[0].Index = -1 }),
		"stream of no node":  bad(func(h *History) { h.Streams[0].Node = 9 }),
		"sessions":           bad(func(h *History) { h.Streams[0].Sessions = 1000 }),
		"entry of no stream": bad(func(h *History) { h.Logs[0].Entries[1].Stream = 5 }),
		"entry of odd kind":  bad(func(h *History) { h.Logs[0].Entries[1].Stream = -3 }),
		"entry of odd index": bad(func(h *History) { h.Logs[0].Entries[1].Index = -1 }),
	} {
		if h, err := Decode(bytes.NewReader(b)); err == nil {
			t.Errorf("%s: accepted as %+v", name, h)
		}
	}
}

// For arbitrary bytes, loading ends in a history or an error.
func FuzzDecode(f *testing.F) {
	var good bytes.Buffer
	if err := sample().Write(&good); err != nil {
		f.Fatal(err)
	}
	f.Add(good.Bytes())
	f.Add([]byte(magic))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = Decode(bytes.NewReader(b)) })
}
