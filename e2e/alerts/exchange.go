package alerts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ordergrid/ordergrid/client"
)

// flowSymbol is the one of all orders of the flow.
const flowSymbol = "IBM"

// matching gives a grid a book for the orders of the flow, with prices up to one.
func matching(dir string, high int) (gridOptions, error) {
	file := filepath.Join(dir, "instruments.yaml")
	text := fmt.Sprintf("- {symbol: %s, tick: \"0.0001\", lot: \"1\", low: \"0\", high: \"%d\"}\n", flowSymbol, high)
	return gridOptions{args: []string{"--", "--execution", "match", "--instruments", file}}, os.WriteFile(file, []byte(text), 0o600)
}

// market changes the state of the book.
func (g *grid) market(ctx context.Context, state client.BookState) error {
	_, _, err := g.client.Market(ctx, client.MarketOp{Symbol: flowSymbol, State: state, Reason: "the alert is tested"})
	return err
}
