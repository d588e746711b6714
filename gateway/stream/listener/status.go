package listener

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/ordergrid/ordergrid/internal/histogram"
)

// Status is what the command status is answered with.
type Status struct {
	Grid       string            `json:"grid,omitempty"`
	Time       time.Time         `json:"time"`
	Ready      bool              `json:"ready"`
	Clients    int               `json:"clients"`
	FileError  string            `json:"fileError,omitempty"` // why a file of clients is not in use as it is
	PerSecond  float64           `json:"ordersPerSecond"`     // over the last seconds
	Delay      *Delay            `json:"delay,omitempty"`     // of these orders
	Published  uint64            `json:"published"`           // messages of this gateway's clients, since it began
	Peers      []PeerStatus      `json:"peers,omitempty"`     // other gateways
	Partitions []PartitionStatus `json:"partitions"`
}

// Delay is from the receipt by the primary to the publishing at the gateway, by the clocks of both.
type Delay struct {
	P50  float64 `json:"p50Ms"`
	P99  float64 `json:"p99Ms"`
	P999 float64 `json:"p999Ms"`
}

// PartitionStatus is a partition as the gateway knows it.
type PartitionStatus struct {
	Partition string   `json:"partition"`
	Epoch     uint64   `json:"epoch"`
	Lineage   uint32   `json:"lineage"`
	Members   []Member `json:"members"`
	Read      uint64   `json:"read"` // last entry that was read
	Lag       uint64   `json:"lag"`  // committed and not read yet
	Orders    uint64   `json:"orders"`
	Error     string   `json:"error,omitempty"`
}

// Member is a copy of a partition.
type Member struct {
	ID      string `json:"id"`
	Primary bool   `json:"primary"`
	InSync  bool   `json:"inSync"`
}

// statusPage renders the status once a second while clients ask for it.
type statusPage struct {
	text  atomic.Pointer[[]byte]
	asked atomic.Bool

	mu   sync.Mutex
	seen []reading
}

// reading is the histogram of delays at a time.
type reading struct {
	at    time.Time
	count uint64
	delay *histogram.Native
}

const (
	statusEvery = time.Second
	// statusSpan is what quantiles and rates are about.
	statusSpan = 10
)

// unready is the status until the first one is rendered, with all that a page reads.
var unready, _ = json.Marshal(Status{Partitions: []PartitionStatus{}}) // it has nothing that cannot be encoded

// bytes is called on the loop.
func (s *statusPage) bytes() []byte {
	s.asked.Store(true)
	if b := s.text.Load(); b != nil {
		return *b
	}
	return unready
}

func (s *statusPage) run(ctx context.Context, l *Listener) {
	for idle := 0; ; {
		if s.asked.Swap(false) {
			idle = 0
		} else {
			idle++
		}
		if idle < statusSpan {
			st := l.Status()
			st.FileError, st.Peers = "", nil // they have names of others
			if b, err := json.Marshal(st); err == nil {
				s.text.Store(&b)
			}
		} else if idle == statusSpan {
			s.text.Store(nil) // it would be stale
		}
		if !pause(ctx, statusEvery) {
			return
		}
	}
}

// look adds a reading and returns what came since the oldest one that is kept.
func (s *statusPage) look(m *metrics) (perSecond float64, d *Delay) {
	m.mu.Lock()
	delays := m.delays
	m.mu.Unlock()
	r := reading{at: time.Now(), count: delays.Count()}
	var out dto.Metric
	if histogram.Metric(descDelay, &delays).Write(&out) == nil && out.Histogram != nil {
		if n, err := histogram.FromScrape(out.Histogram); err == nil {
			r.delay = n
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.seen); n > 0 && r.at.Sub(s.seen[n-1].at) > 3*statusEvery {
		s.seen = s.seen[:0]
	}
	if s.seen = append(s.seen, r); len(s.seen) > statusSpan+1 {
		s.seen = s.seen[1:]
	}
	old := s.seen[0]
	if span := r.at.Sub(old.at).Seconds(); span > 0 {
		perSecond = float64(r.count-old.count) / span
	}
	if r.count == old.count || r.delay == nil || old.delay == nil {
		return perSecond, nil
	}
	n := r.delay.Clone()
	n.Sub(old.delay)
	return perSecond, &Delay{n.Quantile(0.5) * 1e3, n.Quantile(0.99) * 1e3, n.Quantile(0.999) * 1e3}
}

// Status returns the present status.
func (l *Listener) Status() Status {
	s := Status{Grid: l.cfg.Grid, Time: time.Now().UTC(), Partitions: []PartitionStatus{}}
	s.FileError = l.cfg.Access.Failure()
	s.PerSecond, s.Delay = l.status.look(l.metrics)
	g := l.current.Load()
	if g == nil {
		return s
	}
	s.Ready = g.ready.Load()
	if st, ok := g.server.Stats(); ok {
		s.Clients, s.Published = st.Hub.Clients, st.Publish.Published
	}
	s.Peers = g.peers.list()
	table := l.cfg.Client.Table()
	for i, p := range g.parts {
		read := p.readTo.Load()
		ps := PartitionStatus{Partition: p.id.String(), Lineage: p.end.Lineage, Read: read, Lag: max(p.commit.Load(), read) - read, Orders: p.orders.Load(), Members: []Member{}}
		if err := p.failure(); err != nil {
			ps.Error = err.Error()
		}
		if i < len(table) {
			ps.Epoch = table[i].Epoch
			for _, m := range table[i].Members {
				ps.Members = append(ps.Members, Member{m.ID, m.ID == table[i].Primary.ID, m.InSync})
			}
		}
		s.Partitions = append(s.Partitions, ps)
	}
	return s
}
