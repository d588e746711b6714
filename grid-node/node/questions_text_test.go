package node

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/query/statement"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// A statement's answer has the columns that the statement names, in its order, gathered from all partitions.
func TestStatementsOfPrograms(t *testing.T) {
	g := newGrid(t, 2, 2)
	g.base.Views = &Views{Memory: 128 << 20, Rows: 1 << 16}
	g.up()
	c := g.client()
	var last []client.Receipt
	for n := range 40 {
		r, err := c.Submit(t.Context(), fix(fmt.Sprintf("s%02d", n)))
		if err != nil {
			t.Fatal(err)
		}
		last = append(last, r)
	}
	// A question of a program sees what its receipts name; a statement has none, so it waits here.
	if _, err := c.Query(t.Context(), client.Query{Query: query.Query{Aggregates: []query.Aggregate{{Func: query.Count}}}, After: last, Linearizable: true}); err != nil {
		t.Fatal(err)
	}
	var a *client.Answer
	g.until(func() (all bool) {
		var err error
		if a, err = c.QueryText(t.Context(), "select Symbol, ClOrdID as id from orders where ClOrdID like 's%' order by ClOrdID desc limit 3"); err != nil {
			t.Fatal(err)
		}
		return len(a.Rows) == 3 && a.Rows[0][1].Text == "s39"
	}, "the statement does not see all orders")
	if want := []query.Column{{Name: "Symbol", Kind: view.Text}, {Name: "id", Kind: view.Text}}; !slices.Equal(a.Columns, want) {
		t.Errorf("columns %+v, want %+v", a.Columns, want)
	}
	for n, row := range a.Rows {
		if want := fmt.Sprintf("s%02d", 39-n); len(row) != 2 || row[1].Text != want || row[0].Text == "" {
			t.Errorf("row %d is %+v, want that of %s", n, row, want)
		}
	}
	if a, err := c.QueryText(t.Context(), "select count(*) as n, Symbol from orders group by Symbol"); err != nil || len(a.Rows) != 1 || a.Rows[0][0].Int != 40 || a.Columns[0].Name != "n" {
		t.Errorf("groups: %+v, %v", a, err)
	}
	var wrong *statement.Error
	if _, err := c.QueryText(t.Context(), "select Pric from orders"); !errors.As(err, &wrong) || wrong.At != 8 {
		t.Errorf("a column that there is not: %v", err)
	}
}
