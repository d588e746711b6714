package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
)

// The HTTP form of the arbiter. Bodies are arbiter.Record in JSON, errors are
// problem objects.
//
//	GET /v1/partitions                          all records
//	GET /v1/partitions/{name}                   one record
//	GET /v1/watch?grid=NAME&after=VERSION       what has changed in a grid's records since the store had that version, which an
//	                                            answer before said; all of them with 0 or without; nothing after WaitLimit
//	PUT /v1/partitions/{name}                   compare-and-swap: 409 conflict, 422 refused
//	PUT /v1/partitions/{name}/spec              changes the fields of the spec that the body has
//	GET, POST /v1/faults                        a Fault: how the above, but for spec, misbehaves

const maxBody = 64 << 10

// problem is the body of an error response. Record is the current one, where known.
type problem struct {
	Message string          `json:"message"`
	Record  *arbiter.Record `json:"record,omitempty"`
}

// Handler serves the store over HTTP.
func (s *Store) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/partitions", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, s.List())
	})
	mux.HandleFunc("GET /v1/partitions/{name}", s.faulty(s.serveGet))
	mux.HandleFunc("GET /v1/watch", s.faulty(s.serveWatch))
	mux.HandleFunc("PUT /v1/partitions/{name}", s.faulty(s.servePut))
	mux.HandleFunc("PUT /v1/partitions/{name}/spec", s.serveSpec)
	mux.HandleFunc("GET /v1/faults", s.serveFault)
	mux.HandleFunc("POST /v1/faults", s.serveFault)
	return mux
}

func (s *Store) serveGet(w http.ResponseWriter, req *http.Request) {
	name := req.PathValue("name")
	r, err := s.Get(req.Context(), name)
	s.reply(w, r, name, err)
}

func (s *Store) servePut(w http.ResponseWriter, req *http.Request) {
	var r arbiter.Record
	if !decode(w, req, &r, "one record") {
		return
	}
	r.Name = req.PathValue("name")
	now, err := s.CompareAndSwap(req.Context(), r)
	s.reply(w, now, r.Name, err)
}

func (s *Store) reply(w http.ResponseWriter, r arbiter.Record, name string, err error) {
	switch {
	case err == nil:
		answer(w, http.StatusOK, r)
	case errors.Is(err, arbiter.ErrNotFound):
		answer(w, http.StatusNotFound, problem{Message: fmt.Sprintf("%v: %q", err, name)})
	case errors.Is(err, arbiter.ErrConflict):
		answer(w, http.StatusConflict, problem{Message: err.Error(), Record: &r})
	default:
		answer(w, http.StatusUnprocessableEntity, problem{Message: err.Error(), Record: &r})
	}
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client is gone: the error is ignored
}
