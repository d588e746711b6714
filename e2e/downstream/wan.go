package downstream

import "github.com/ordergrid/ordergrid/internal/wan"

// WAN is a road to a node of a grid.
type WAN = wan.Road

// NewWAN starts one.
var NewWAN = wan.New
