package golden

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestRow(t *testing.T) {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "a_total", Help: "Counts a|b."}, []string{"z", "k"})
	v.WithLabelValues("1", "2").Inc()
	reg := prometheus.NewRegistry()
	reg.MustRegister(v)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	const want = "| `a_total` | counter | `k` `z` | Counts a\\|b."
	if got := row(families[0]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	page := "# x\n| `a_total` | counter |\n| name |\n|`b`|\ntext `c`\n"
	if got := rows(page); len(got) != 1 || got["a_total"] != "| `a_total` | counter |" {
		t.Errorf("rows %v", got)
	}
}
