package published

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Preset is a shape of streams to many clients.
type Preset struct {
	Topics     int `json:"topics"`
	Pub        int `json:"pub"`             // messages/s published
	RateEach   int `json:"rate_per_client"` // messages/s delivered to a client
	Subs       int `json:"subs"`            // topics of a client
	Payload    int `json:"payload"`         // bytes
	TopicBytes int `json:"topic_bytes"`
}

func (p Preset) check() error {
	switch {
	case p.Topics < 1 || p.Pub < 1 || p.Subs < 1 || p.Subs > p.Topics || p.Payload < 1 || p.Topics%p.Subs != 0:
		return fmt.Errorf("%+v: topics, pub, subs and payload must be 1 or more, and subs divide topics", p)
	case p.Pub*p.Subs != p.Topics*p.RateEach:
		return fmt.Errorf("%+v: pub * subs / topics must be rate_per_client", p)
	}
	return nil
}

// Fanout are the parameters of the scenarios that stream to many clients. A list that a scenario has not is empty.
type Fanout struct {
	High, VeryHigh Preset
	Clients        []int
	ManyClients    []int // of the larger payload
	Measured       int   // clients whose messages are timed
	MeasureS       int
	Discard        []int // messages/s that no client wants
	Payload        []int
	FlushMs        int
}

// exactMeasureS is how long a step of the published size is measured: the report does not say how long it did.
// exactFlushMs is its interval: a shape of 900,000 messages/s takes more than one core otherwise.
const exactMeasureS, exactFlushMs = 10, 100

// Fanout reads both parameter sets of sol-fanout, and of sol-filter and sol-large, which are based on it.
func (d *Data) Fanout(s Scenario) (exact, scaled Fanout, err error) {
	base, _ := d.Scenario(FanoutScenario)
	if exact, scaled, err = base.fanout(); err != nil || s.Name == FanoutScenario {
		return exact, scaled, err
	}
	switch s.Name {
	case FilterScenario:
		type set struct {
			Discard []int  `json:"discard"`
			Clients int    `json:"clients"`
			Base    string `json:"base"`
		}
		var a, b set
		err = errors.Join(decodeStrict(s.Exact, &a), decodeStrict(s.Scaled, &b))
		exact.Discard, scaled.Discard, exact.Clients, scaled.Clients = a.Discard, b.Discard, []int{a.Clients}, []int{b.Clients}
		if err == nil && (len(a.Discard) < 2 || len(b.Discard) < 2 || a.Discard[0] != 0 || b.Discard[0] != 0 || a.Clients < 1 || b.Clients < 1) {
			err = errors.New("clients must be 1 or more, and discard begin with 0 and go on")
		}
	case LargeScenario:
		var a struct {
			Payload []int            `json:"payload"`
			Clients map[string][]int `json:"clients"`
			Base    string           `json:"base"`
		}
		var b struct {
			Payload []int `json:"payload"`
			Clients []int `json:"clients"`
		}
		err = errors.Join(decodeStrict(s.Exact, &a), decodeStrict(s.Scaled, &b))
		exact.Payload, scaled.Payload = a.Payload, b.Payload
		exact.Clients, exact.ManyClients, scaled.Clients, scaled.ManyClients = a.Clients["kb1"], a.Clients["kb2"], b.Clients, b.Clients
		if err == nil && (len(a.Payload) != 2 || len(b.Payload) != 2 || !slices.Equal(slices.Sorted(maps.Keys(a.Clients)), []string{"kb1", "kb2"}) || len(b.Clients) == 0) {
			err = errors.New("payload must be two sizes, clients a list for each")
		}
	default:
		err = errors.New("it does not stream")
	}
	if err != nil {
		err = fmt.Errorf("scenario %q: %w", s.Name, err)
	}
	return exact, scaled, err
}

func (s Scenario) fanout() (exact, scaled Fanout, err error) {
	var a struct {
		High     Preset   `json:"high"`
		VeryHigh Preset   `json:"vhigh"`
		Clients  []int    `json:"clients"`
		Link     []string `json:"link"`
		Hosts    int      `json:"subscriber_hosts"`
	}
	var b struct {
		High     Preset `json:"high"`
		VeryHigh Preset `json:"vhigh"`
		Clients  []int  `json:"clients"`
		Measured int    `json:"measured_subscribers"`
		MeasureS int    `json:"measure_s"`
		Note     string `json:"note"`
	}
	if err := s.decodeSets("", &a, &b); err != nil {
		return exact, scaled, err
	}
	exact = Fanout{High: a.High, VeryHigh: a.VeryHigh, Clients: a.Clients, Measured: b.Measured, MeasureS: exactMeasureS, FlushMs: exactFlushMs}
	scaled = Fanout{High: b.High, VeryHigh: b.VeryHigh, Clients: b.Clients, Measured: b.Measured, MeasureS: b.MeasureS}
	for _, f := range []Fanout{exact, scaled} {
		if err := errors.Join(f.High.check(), f.VeryHigh.check()); err != nil {
			return exact, scaled, fmt.Errorf("scenario %q: %w", s.Name, err)
		}
		if len(f.Clients) < 2 || !slices.IsSorted(f.Clients) || f.Measured < 2 || f.MeasureS < 1 {
			return exact, scaled, fmt.Errorf("scenario %q: %+v: needs rising clients, 2 or more of them measured, for a second or more", s.Name, f)
		}
	}
	return exact, scaled, nil
}
