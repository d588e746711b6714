package published

import (
	"errors"
	"fmt"
	"slices"
)

// ExchangeScenario is the exchange of the JADE report.
const ExchangeScenario = "jade-tradeem"

// Exchange is a row of its table.
type Exchange struct {
	Users, Queues, Concentrators int
	Feeder, Matchmaker           int    // transactions per commit, of each
	Logs                         string // where the database had its logs
	Maintenance                  bool   // of collections other than indexes
	TPS                          float64
}

// Exchange reads both parameter sets. The published one is the table itself. The scaled one has lists, of which each row
// has the first ones and one of the further ones, with the most users then.
func (d *Data) Exchange(s Scenario) (exact, scaled []Exchange, err error) {
	var a struct {
		Rows string `json:"rows"` // in words
	}
	var b struct {
		Users         []int    `json:"users"`
		Queues        []int    `json:"queues"`
		Concentrators []int    `json:"concentrators"`
		Batch         []string `json:"batch"`
		Note          string   `json:"fd_note"`
	}
	if err := s.decodeSets(ExchangeScenario, &a, &b); err != nil {
		return nil, nil, err
	}
	t, _ := d.Table("jade", "TradeEm-TCP")
	for _, r := range t.Rows {
		n := func(column string) int { return int(r[column].Number) }
		exact = append(exact, Exchange{n("users"), n("queues"), n("concentrators"), n("feeder_tx_per_commit"), n("matchmaker_tx_per_commit"),
			r["logs"].Text, r["collection_maintenance"].Text == "Yes", r["tps"].Number})
	}
	if len(b.Users) == 0 || len(b.Queues) == 0 || len(b.Concentrators) == 0 || len(b.Batch) == 0 || !slices.IsSorted(b.Users) {
		return nil, nil, fmt.Errorf("scenario %q: users %v, queues %v, concentrators %v, batch %v: each must have values, and users must rise", s.Name, b.Users, b.Queues, b.Concentrators, b.Batch)
	}
	add := func(users, queues, concentrators int, batch string) {
		x := Exchange{Users: users, Queues: queues, Concentrators: concentrators}
		if _, e := fmt.Sscanf(batch, "%d/%d", &x.Feeder, &x.Matchmaker); e != nil {
			err = fmt.Errorf("scenario %q: batch %q: must be those of feeder and matchmaker, as 10/100", s.Name, batch)
		}
		scaled = append(scaled, x)
	}
	most := b.Users[len(b.Users)-1]
	for _, users := range b.Users {
		add(users, b.Queues[0], b.Concentrators[0], b.Batch[0])
	}
	for _, n := range b.Concentrators[1:] {
		add(most, b.Queues[0], n, b.Batch[0])
	}
	for _, batch := range b.Batch[1:] {
		add(most, b.Queues[0], b.Concentrators[0], batch)
	}
	for _, n := range b.Queues[1:] {
		add(most, n, b.Concentrators[0], b.Batch[0])
	}
	for _, x := range append(slices.Clone(exact), scaled...) {
		if x.Queues < 1 || x.Concentrators < 1 || x.Feeder < 1 || x.Matchmaker < 1 || x.Users < x.Queues*x.Concentrators {
			err = errors.Join(err, fmt.Errorf("scenario %q: %+v: must be 1 or more, and a user or more for each queue of each concentrator", s.Name, x))
		}
	}
	if len(exact) == 0 {
		err = errors.Join(err, fmt.Errorf("scenario %q: there is no table TradeEm-TCP", s.Name))
	}
	return exact, scaled, err
}

// Alike reports whether two rows differ in their users and concentrators alone.
func (x Exchange) Alike(y Exchange) bool {
	x.Users, x.Concentrators, x.TPS = y.Users, y.Concentrators, y.TPS
	return x == y
}
