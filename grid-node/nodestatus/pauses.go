package nodestatus

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
)

// PausesPath of the page on a node's HTTP port.
const PausesPath = "/pauses"

// maxPauses is how many the runtime keeps.
const maxPauses = 256

// Pauses are the last garbage collections of a process, as its runtime records them. A
// collection stops the world twice, shortly; the runtime keeps the sum of both and the end
// of the second.
type Pauses struct {
	// Collections since the process began; Recent has the last of them.
	Collections int64   `json:"collections"`
	Recent      []Pause `json:"recent"` // latest first, at most 256
}

// Pause is one collection.
type Pause struct {
	EndUnixNs int64 `json:"endUnixNs"` // by the process's wall clock
	Ns        int64 `json:"ns"`
}

// OwnPauses returns those of this process. It does not stop the world.
func OwnPauses() Pauses {
	var s debug.GCStats
	debug.ReadGCStats(&s)
	p := Pauses{Collections: s.NumGC, Recent: make([]Pause, 0, len(s.Pause))}
	for i := range s.Pause {
		p.Recent = append(p.Recent, Pause{EndUnixNs: s.PauseEnd[i].UnixNano(), Ns: int64(s.Pause[i])})
	}
	return p
}

// ServePauses answers PausesPath.
func ServePauses(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(OwnPauses()) // the client is gone: the error is ignored
}

// GetPauses requests the page from the node at url, its HTTP port's base such as
// http://10.0.0.1:9400.
func GetPauses(ctx context.Context, c *http.Client, url string) (Pauses, error) {
	var p Pauses
	body, err := fetch(ctx, c, url+PausesPath, maxBody)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return p, fmt.Errorf("GET %s%s: the answer is not a list of pauses: %w", url, PausesPath, err)
	}
	if len(p.Recent) > maxPauses || p.Collections < 0 {
		return p, fmt.Errorf("GET %s%s: %d pauses of %d collections; at most %d are kept", url, PausesPath, len(p.Recent), p.Collections, maxPauses)
	}
	return p, nil
}
