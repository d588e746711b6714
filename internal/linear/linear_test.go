package linear_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/internal/linear"
)

// Each case is a history of orders; bad is the order that cannot be explained.
var histories = []struct {
	name string
	ops  []linear.Op
	bad  string
}{
	{name: "nothing"},
	{name: "acknowledged, then found", ops: []linear.Op{sub("a", 0, 10, 5), get("a", 11, 12, 5)}},
	{name: "found while the answer is on its way", ops: []linear.Op{sub("a", 0, 10, 5), get("a", 3, 4, 5)}},
	{name: "not found while it is on its way", ops: []linear.Op{sub("a", 0, 10, 5), get("a", 3, 4, 0)}},
	{name: "acknowledged, then not found", ops: []linear.Op{sub("a", 0, 10, 5), get("a", 11, 12, 0)}, bad: "a"},
	{name: "found, then not found", ops: []linear.Op{sub("a", 0, 20, 5), get("a", 3, 4, 5), get("a", 5, 6, 0)}, bad: "a"},
	{name: "found elsewhere", ops: []linear.Op{sub("a", 0, 10, 5), get("a", 11, 12, 6)}, bad: "a"},
	{name: "no answer: not there, later there", ops: []linear.Op{lost("a", 0), get("a", 3, 4, 0), get("a", 500, 501, 5)}},
	{name: "no answer: there, then not", ops: []linear.Op{lost("a", 0), get("a", 3, 4, 5), get("a", 5, 6, 0)}, bad: "a"},
	{name: "no answer: at two places", ops: []linear.Op{lost("a", 0), get("a", 3, 4, 5), get("a", 5, 6, 6)}, bad: "a"},
	{name: "no answer: found before it was sent", ops: []linear.Op{lost("a", 10), get("a", 3, 4, 5)}, bad: "a"},
	{name: "found, never written", ops: []linear.Op{get("a", 3, 4, 5)}, bad: "a"},
	{name: "acknowledged twice, at one place", ops: []linear.Op{sub("a", 0, 10, 5), sub("a", 20, 30, 5)}},
	{name: "acknowledged twice, at two places", ops: []linear.Op{sub("a", 0, 10, 5), sub("a", 20, 30, 7)}, bad: "a"},
	{name: "orders do not concern each other", ops: []linear.Op{sub("a", 0, 10, 5), get("b", 11, 12, 0), sub("b", 13, 14, 6), get("b", 15, 16, 6)}},
	{name: "the second of two is wrong", ops: []linear.Op{sub("a", 0, 10, 5), sub("b", 13, 14, 6), get("b", 15, 16, 0)}, bad: "b"},
}

func sub(key string, call, ret int64, seq uint64) linear.Op {
	return linear.Op{Kind: linear.Submit, Key: key, Call: call, Return: ret, Seq: seq}
}

func get(key string, call, ret int64, seq uint64) linear.Op {
	return linear.Op{Client: 1, Kind: linear.Get, Key: key, Call: call, Return: ret, Seq: seq}
}

func lost(key string, call int64) linear.Op {
	return linear.Op{Kind: linear.Submit, Key: key, Call: call, Return: linear.Never}
}

func TestCheck(t *testing.T) {
	for _, h := range histories {
		t.Run(h.name, func(t *testing.T) {
			v := linear.Check(h.ops)
			switch {
			case v == nil && h.bad != "":
				t.Errorf("accepted, wanted order %s to be refused", h.bad)
			case v != nil && v.Key != h.bad:
				t.Errorf("refused: %v, wanted %q", v, h.bad)
			}
		})
	}
}

func TestCheckOrder(t *testing.T) {
	good := []linear.Op{sub("a", 0, 10, 5), sub("b", 5, 8, 4), sub("c", 11, 12, 6), lost("d", 1), get("a", 50, 51, 5)}
	if v := linear.CheckOrder(good); v != nil {
		t.Errorf("refused: %v", v)
	}
	bad := append(good, sub("e", 13, 14, 3))
	if v := linear.CheckOrder(bad); v == nil || v.Key != "e" || len(v.Ops) != 2 {
		t.Errorf("got %v, wanted order e to be refused", v)
	}
}

func TestWriteHTML(t *testing.T) {
	v := linear.Check([]linear.Op{sub("a", 0, 10, 5), get("a", 11, 12, 0)})
	if v == nil || !strings.Contains(v.Error(), "not found") {
		t.Fatalf("got %v, wanted a violation that lists the operations", v)
	}
	var page bytes.Buffer
	if err := linear.WriteHTML(&page, v.Ops); err != nil || !bytes.Contains(page.Bytes(), []byte("<html")) {
		t.Errorf("no page: %v, %d bytes", err, page.Len())
	}
}
