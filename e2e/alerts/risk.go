package alerts

import (
	"os"
	"path/filepath"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// oneTrader sends none of the orders of the flow.
var oneTrader = client.Kill{Scope: order.GuardTrader, Name: "ann", Why: "the alert is tested", Who: "alerts-check"}

// limited gives a grid a file of limits.
func limited(dir, limits string) (gridOptions, error) {
	file := filepath.Join(dir, "limits.json")
	return gridOptions{args: []string{"--limits", file}}, os.WriteFile(file, []byte(limits), 0o600)
}
