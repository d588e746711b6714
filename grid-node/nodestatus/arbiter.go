package nodestatus

import (
	"context"
	"fmt"
	"net/http"
)

// ArbiterPath of the page on a node's HTTP port.
const ArbiterPath = "/arbiter"

// Arbiter is the state of a node's connection to its arbiter, the API server. The page
// makes the node read one record now, because an idle node sends no requests for hours; a
// read within the last half second is not repeated.
type Arbiter struct {
	Pod    string `json:"pod"`
	BootID string `json:"bootID"`
	// Reachable reports whether the last read was answered, even with an error of the API
	// server.
	Reachable  bool   `json:"reachable"`
	Error      string `json:"error,omitempty"` // of the last read
	TookNs     int64  `json:"tookNs"`          // of the last read
	AskedAgoNs int64  `json:"askedAgoNs"`      // age of the end of the last read
	// ContactAgoNs is the age of the last message from the API server: a response or a
	// watch event. 0: never.
	ContactAgoNs int64 `json:"contactAgoNs,omitempty"`
}

// GetArbiter requests the page from the node at address, "host:port" of its HTTP port. A
// node that cannot reach the API server takes some seconds to answer.
func GetArbiter(ctx context.Context, c *http.Client, address string) (*Arbiter, error) {
	a := &Arbiter{}
	if err := get(ctx, c, address, ArbiterPath, maxBody, a); err != nil {
		return nil, err
	}
	if a.Pod == "" || a.BootID == "" {
		return nil, fmt.Errorf("GET http://%s%s: the answer names no pod and boot id; is this a grid node of this version?", address, ArbiterPath)
	}
	return a, nil
}
