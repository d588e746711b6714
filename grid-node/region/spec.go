package region

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Spec is a region as a configuration has it. One that no configuration has any more keeps its entries.
type Spec struct {
	Name     string
	MaxBytes int64 // 0: as all together
	LifeNs   int64 // how long a value lives whose put names no time; 0: for ever
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
	}
	return nil
}
