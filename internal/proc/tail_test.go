package proc_test

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/internal/proc"
)

func TestKeepsTheEnd(t *testing.T) {
	var w proc.Tail
	for range 3000 {
		_, _ = w.Write([]byte("0123456789"))
	}
	_, _ = w.Write([]byte("end"))
	if s := w.String(); len(s) != proc.TailLimit || !strings.HasSuffix(s, "789end") {
		t.Errorf("%d bytes, ends with %q", len(s), s[len(s)-6:])
	}
}
