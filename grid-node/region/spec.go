package region

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Spec is a region as a configuration has it. One that no configuration has any more keeps its entries.
type Spec struct {
	Name     string
	MaxBytes int64 // 0: as all together
	LifeNs   int64 // how long a value lives whose put names no time; 0: for ever
	// Source is which state of which GridRegion it is, where the operator makes the file; nil: a person keeps it.
	Source *limits.Source
}

// Definition is the value of the entry that defines the region, with the source or without.
func (s *Spec) Definition(sourced bool) []byte {
	b := le.AppendUint64(le.AppendUint64(nil, uint64(s.MaxBytes)), uint64(s.LifeNs))
	if sourced {
		b = append(b, s.Source.Text()...)
	}
	return b
}

// CheckSpecs rejects regions that no partition can have.
func CheckSpecs(all []Spec) error {
	if len(all) > order.MaxRegions {
		return fmt.Errorf("regions: %d of them, allowed: at most %d", len(all), order.MaxRegions)
	}
	for i := range all {
		s := &all[i]
		if !order.IsRegionName(s.Name) || slices.ContainsFunc(all[:i], func(o Spec) bool { return o.Name == s.Name }) {
			return fmt.Errorf("regions: name is %.60q, allowed: 1 to 48 lowercase letters, digits and underscores, a letter first, each once", s.Name)
		}
		if s.MaxBytes < 0 || s.LifeNs < 0 {
			return fmt.Errorf("regions: %s: maxBytes is %d, life %d ns, allowed: 0 or more", s.Name, s.MaxBytes, s.LifeNs)
		}
		if err := s.Source.Validate(); err != nil {
			return fmt.Errorf("regions: %s: %w", s.Name, err)
		}
	}
	return nil
}
