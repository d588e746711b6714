package testgrid

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Node is one process, as the grid lists it.
type Node struct {
	Pod     string
	Address string
	PID     int
}

// Nodes are the present processes; one that was killed is started again.
func (g *Grid) Nodes() (nodes []Node, err error) {
	return nodes, g.control(http.MethodGet, "/v1/nodes", "", &nodes)
}

// PIDOf is the process that listens on address now.
func (g *Grid) PIDOf(address string) (int, error) {
	nodes, err := g.Nodes()
	for _, n := range nodes {
		if n.Address == address && n.PID != 0 {
			return n.PID, nil
		}
	}
	return 0, fmt.Errorf("no process of the grid listens on %s: %w", address, err)
}

// SetSpec changes fields of a partition's spec, for example {"preferredPod":
// "dev-s0-1"}. name is the record's, for example dev-p1.
func (g *Grid) SetSpec(name, fields string) error {
	return g.control(http.MethodPut, "/v1/partitions/"+name+"/spec", fields, nil)
}

// control talks to the arbiter's address, where the grid's switches are.
func (g *Grid) control(method, path, body string, into any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, g.Arbiter+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: status %s: %s", method, path, resp.Status, bytes.TrimSpace(text))
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(text, into)
}
