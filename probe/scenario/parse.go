package scenario

import (
	"fmt"
	"strconv"
	"strings"
)

// ParseRates reads a comma list of rates, such as "100,250".
func ParseRates(s string) ([]int, error) {
	parts := strings.Split(s, ",")
	if len(parts) > MaxRates {
		return nil, fmt.Errorf("rates: %d values, at most %d are allowed", len(parts), MaxRates)
	}
	rates := make([]int, len(parts))
	for i, part := range parts {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("rates: %.40q is not a whole number of orders per second; write for example 100,250", part)
		}
		rates[i] = n
	}
	return rates, nil
}
