package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/ordergrid/ordergrid/probe/devgrid"
)

// PIDOf is the process of a grid that listens on address now; one that was killed is started again.
func PIDOf(g *devgrid.Grid, address string) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.Arbiter+"/v1/nodes", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	var nodes []struct {
		Address string
		PID     int
	}
	if err := json.NewDecoder(resp.Body).Decode(&nodes); err != nil {
		return 0, fmt.Errorf("GET /v1/nodes: status %s: %w", resp.Status, err)
	}
	for _, n := range nodes {
		if n.Address == address && n.PID != 0 {
			return n.PID, nil
		}
	}
	return 0, fmt.Errorf("no process of the grid listens on %s", address)
}
