package tail_test

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/internal/tail"
)

func TestKeepsTheEnd(t *testing.T) {
	var w tail.Writer
	for range 3000 {
		_, _ = w.Write([]byte("0123456789"))
	}
	_, _ = w.Write([]byte("end"))
	if s := w.String(); len(s) != tail.Limit || !strings.HasSuffix(s, "789end") {
		t.Errorf("%d bytes, ends with %q", len(s), s[len(s)-6:])
	}
}
