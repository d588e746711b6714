package report

import (
	"encoding/json"
	"fmt"
)

// Fit encodes the result in at most limit bytes. Data that no figure or verdict depends on is
// dropped first: orders around spikes, then time series; Omitted names what was dropped.
func (r *Result) Fit(limit int) ([]byte, error) {
	small := *r
	for _, cut := range []struct {
		what string
		from func(*ProbeStep)
	}{
		{"", nil},
		{"orders around spikes", func(s *ProbeStep) {
			spikes := append([]Spike(nil), s.Spikes...)
			for i := range spikes {
				spikes[i].Orders = nil
			}
			s.Spikes = spikes
		}},
		{"time series", func(s *ProbeStep) { s.Series = nil }},
	} {
		if cut.from != nil {
			small = small.without(cut.from)
			small.Omitted = append(small.Omitted, cut.what)
		}
		b, err := json.Marshal(&small)
		if err != nil || len(b) <= limit {
			return b, err
		}
	}
	return nil, fmt.Errorf("result is more than %d bytes even without its time series: use fewer rates or repeats", limit)
}

// without is a copy with cut applied to every step.
func (r *Result) without(cut func(*ProbeStep)) Result {
	out := *r
	out.Omitted = append([]string(nil), r.Omitted...)
	out.Probes = append([]Probe(nil), r.Probes...)
	for i := range out.Probes {
		p := &out.Probes[i]
		p.Steps = append([]ProbeStep(nil), p.Steps...)
		for j := range p.Steps {
			cut(&p.Steps[j])
		}
	}
	return out
}
