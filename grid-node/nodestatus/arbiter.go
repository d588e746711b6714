package nodestatus

import (
	"context"
	"fmt"
	"net/http"
)

// ArbiterPath of the page on a node's HTTP port.
const ArbiterPath = "/arbiter"

// Arbiter is how a node stands with what it asks for changes of configuration: the API server. The page makes the node
// read one record now, because a node that has nothing to ask is silent for hours; what was read within the last
// half second is not read again.
type Arbiter struct {
	Pod    string `json:"pod"`
	BootID string `json:"bootID"`
	// Reachable says whether the last read was answered, be it with an error of the API server's own.
	Reachable  bool   `json:"reachable"`
	Error      string `json:"error,omitempty"` // of the last read
	TookNs     int64  `json:"tookNs"`          // of the last read
	AskedAgoNs int64  `json:"askedAgoNs"`      // age of the last read's end
	// ContactAgoNs is the age of the last word from the API server of any kind: an answer, an event of a watch. 0: never.
	ContactAgoNs int64 `json:"contactAgoNs,omitempty"`
}

// GetArbiter asks the node at address, "host:port" of its HTTP port. A node that cannot reach the API server takes some
// seconds to answer.
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
