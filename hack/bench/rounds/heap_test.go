package rounds

import (
	"strings"
	"testing"
)

func TestParseHeap(t *testing.T) {
	if v, err := parseHeap(strings.NewReader("# TYPE " + heapMetric + " gauge\n" + heapMetric + " 1.2345e+07\nother 3\n")); v != 12_345_000 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	for _, bad := range []string{"", "other 3\n", heapMetric + " much\n", heapMetric + "\n"} {
		if v, err := parseHeap(strings.NewReader(bad)); err == nil {
			t.Errorf("%q gave %d", bad, v)
		}
	}
}
