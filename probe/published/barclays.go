package published

import (
	"errors"
	"fmt"
)

// Failover are the parameters of FailoverScenario.
type Failover struct {
	Rows     int // of the cache that is asked
	Servers  int
	Nodes    int // of a server
	AtS      int // when a node is killed
	ServerS  int // when a server is
	TotalS   int
	Users    int // clients beside the question, where there are some
	SleepMs  int // how long such a client rests
	Replicas int // of each row
}

// failoverTotal is how long the published runs are followed, in seconds: the longest recovery is 70 s after the kill.
const failoverTotal = 150

// Failover reads both parameter sets. Rows are those of QueryScenario.
func (d *Data) Failover(s Scenario) (exact, scaled Failover, err error) {
	if s.Name != FailoverScenario {
		return exact, scaled, fmt.Errorf("scenario %q is not about lost nodes", s.Name)
	}
	var a struct {
		Servers int    `json:"servers"`
		Nodes   int    `json:"nodes_per_server"`
		Query   string `json:"query"`
		At      struct {
			Node   int `json:"node"`
			Server int `json:"server"`
		} `json:"kill_at_s"`
		Users  int     `json:"bg_users"`
		SleepS float64 `json:"bg_sleep_s"`
	}
	var b struct {
		Servers int     `json:"servers"`
		Nodes   int     `json:"nodes_per_server"`
		At      int     `json:"kill_at_s"`
		TotalS  int     `json:"total_s"`
		Users   int     `json:"bg_users"`
		SleepS  float64 `json:"bg_sleep_s"`
	}
	q, _ := d.Scenario(QueryScenario)
	of, scaledOf, err := d.Caches(q)
	if err := errors.Join(err, decodeStrict(s.Exact, &a), decodeStrict(s.Scaled, &b)); err != nil {
		return exact, scaled, fmt.Errorf("scenario %q: %w", s.Name, err)
	}
	exact = Failover{of.Rows, a.Servers, a.Nodes, a.At.Node, a.At.Server, failoverTotal, a.Users, int(1000 * a.SleepS), 2}
	scaled = Failover{scaledOf.Rows, b.Servers, b.Nodes, b.At, b.At, b.TotalS, b.Users, int(1000 * b.SleepS), 2}
	for _, f := range []Failover{exact, scaled} {
		if f.Servers < 2 || f.Servers%2 != 0 || f.Nodes < 1 || min(f.AtS, f.ServerS) < 1 || max(f.AtS, f.ServerS) >= f.TotalS || f.Users < 1 {
			return exact, scaled, fmt.Errorf("scenario %q: %+v: servers must be even, nodes, kill_at_s and bg_users at least 1, total_s above kill_at_s", s.Name, f)
		}
	}
	return exact, scaled, nil
}

// Projection are the parameters of ProjectionScenario.
type Projection struct {
	Rows    int
	Fields  int // of an object
	Columns int // of the projection
}

// Projection reads the scaled parameter set; the published model names no rows, which are a million in the report's tables.
func (s Scenario) Projection() (exact, scaled Projection, err error) {
	var a struct {
		Mix string `json:"mix"`
	}
	var b struct {
		Rows    int `json:"rows"`
		Fields  int `json:"fields"`
		Columns int `json:"projection"`
	}
	if err := s.decodeSets(ProjectionScenario, &a, &b); err != nil {
		return exact, scaled, err
	}
	if b.Rows < 1 || b.Columns < 1 || b.Fields <= b.Columns {
		return exact, scaled, fmt.Errorf("scenario %q: rows %d, projection %d, fields %d: rows and projection must be at least 1, fields above projection", s.Name, b.Rows, b.Columns, b.Fields)
	}
	return Projection{exactRows, b.Fields, b.Columns}, Projection(b), nil
}

// TopologyNodes are how many nodes the topologies of TopologiesScenario have at most, exact and scaled.
func (s Scenario) TopologyNodes() (exact, scaled int, err error) {
	var a struct {
		JVMs int `json:"jvms"`
	}
	var b struct {
		Nodes int `json:"nodes"`
	}
	if err := s.decodeSets(TopologiesScenario, &a, &b); err != nil {
		return 0, 0, err
	}
	if min(a.JVMs, b.Nodes) < 4 || a.JVMs%2 != 0 || b.Nodes%2 != 0 {
		return 0, 0, fmt.Errorf("scenario %q: jvms %d, nodes %d: must be even, and at least 4", s.Name, a.JVMs, b.Nodes)
	}
	return a.JVMs, b.Nodes, nil
}
