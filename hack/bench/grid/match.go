package grid

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/internal/proc"
	"github.com/ordergrid/ordergrid/internal/scrape"
)

// instruments has what the orders of the generator are for, at 104.2500 to 104.2508.
const instruments = `- {symbol: IBM, tick: "0.0001", lot: "1", low: "100", high: "110", reference: "104.2504"}
`

// matchArgs writes the file of instruments into the grid's directory, and returns the flags by which nodes match.
func (g *Grid) matchArgs() ([]string, error) {
	if !g.Match {
		return nil, nil
	}
	path := filepath.Join(g.Dir, "instruments.yaml")
	return []string{"--execution", "match", "--instruments", path}, os.WriteFile(path, []byte(instruments), 0o600)
}

// watchTrades checks in the end that the books took all orders and that they traded: half of them, but for those that
// rest. Otherwise what was measured is not the cost of matching.
func (g *Grid) watchTrades(at system.Place, run *system.Running, group *proc.Group) {
	run.Told = g.Told
	group.Add(func() error {
		client := &http.Client{Transport: &http.Transport{DialContext: at.Dial}, Timeout: 5 * time.Second}
		defer client.CloseIdleConnections()
		var accepted, trades, refused float64
		for _, url := range run.HTTP {
			if url == "" {
				continue
			}
			r, err := scrape.Get(context.Background(), client, strings.TrimPrefix(url, "http://"))
			if err != nil {
				return err
			}
			accepted, trades = accepted+r.Sum("executions_total", "kind", "accepted"), trades+r.Sum("trades_total")
			refused += r.Sum("book_refusals_total")
		}
		if accepted == 0 || refused > 0 || 3*trades < accepted {
			return fmt.Errorf("books accepted %.0f orders and refused %.0f, and there were %.0f trades: this was no measurement of matching", accepted, refused, trades)
		}
		return nil
	})
}
