package postgres_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestGridKilled: primaries are killed under load, grid-sink and the server of the database in turn with them. Each order
// that was acknowledged is in its table once, under its number.
func TestGridKilled(t *testing.T) {
	kills := downstream.Kills(t, 3)
	p := server(t, downstream.PostgresOptions{})
	url := file(t, p.Admin())
	downstream.RunSink(t, "postgres", "migrate", "--url-file", url).End(0)
	if again := downstream.RunSink(t, "postgres", "migrate", "--url-file", url).End(0); !strings.Contains(again, "nothing to do") {
		t.Errorf("migrated again: %s", again)
	}
	g := testgrid.Run(t, "--external-sink", "orders")
	c := downstream.Dial(t, g)
	begin := func() *downstream.Sink {
		return downstream.StartSink(t, g, "postgres", "orders", "--url-file", url)
	}
	s := begin()
	acked, last := downstream.KillUnderLoad(t, c, g, kills, 100, func(i int) {
		switch i % 3 {
		case 1:
			s.Kill()
			s = begin()
		case 2:
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
		}
	})
	for id, seq := range last {
		downstream.WaitFor(t, fmt.Sprintf("entry %d of %s", seq, id), func() bool {
			at, err := p.PSQL(t.Context(), fmt.Sprintf(`SELECT seq >= %d FROM ordergrid.fence WHERE "partition" = %d`, seq, id))
			return err == nil && at == "t"
		})
	}
	s.Stop()
	out, err := p.PSQL(t.Context(), `SELECT "partition", seq, cl_ord_id FROM ordergrid.orders`)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(out, "\n")
	found := map[wire.OrderID]string{}
	for _, row := range rows {
		cells := strings.Split(row, "|")
		part, _ := strconv.ParseUint(cells[0], 10, 16) // the column is a number
		seq, _ := strconv.ParseUint(cells[1], 10, 64)
		found[wire.OrderID{Partition: wire.PartitionID(part), Seq: seq}] = cells[2]
	}
	for id, clOrdID := range acked {
		if found[id] != clOrdID {
			t.Errorf("order %s was acknowledged as %s, and is in the table as %q", id, clOrdID, found[id])
		}
	}
	if len(rows) != len(found) || len(found) != len(acked) {
		t.Errorf("%d rows of %d orders, %d acknowledged", len(rows), len(found), len(acked))
	}
	for id := range last {
		sql := strings.NewReplacer("'trades'", "'dev'", `"partition" = 0`, fmt.Sprintf(`"partition" = %d`, id)).Replace(pageSQL(t, "dense"))
		if got, err := p.PSQL(t.Context(), sql); err != nil || !strings.HasPrefix(got, "1|") || !strings.HasSuffix(got, "|t|t") {
			t.Errorf("%s: %s (%v), want from entry 1 on, dense, each once", id, got, err)
		}
	}
	if got, err := p.PSQL(t.Context(), pageSQL(t, "lag")); err != nil || len(strings.Split(got, "\n")) != len(last) {
		t.Errorf("lag: %s (%v), want %d rows", got, err, len(last))
	}
	t.Logf("%d primaries killed, grid-sink %d times, the server %d times; %d orders acknowledged, %d rows", kills, (kills+1)/3, kills/3, len(acked), len(rows))
}
