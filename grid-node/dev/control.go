package dev

import (
	"encoding/json"
	"net/http"
)

// The controls of a grid, for tests:
//
//	GET  /v1/nodes                 all processes, with their present pids
//	POST /v1/nodes/{pod}/replace   start another process under the pod's name; see replace
func (g *grid) controls(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/nodes", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, g.nodes())
	})
	mux.HandleFunc("POST /v1/nodes/{pod}/replace", func(w http.ResponseWriter, req *http.Request) {
		n, err := g.replace(req.PathValue("pod"))
		if err != nil {
			answer(w, http.StatusBadRequest, map[string]string{"message": err.Error()})
			return
		}
		answer(w, http.StatusOK, n)
	})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client is gone: the error is ignored
}
