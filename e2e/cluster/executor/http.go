package executor

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
)

// answerWithin is how long a request waits for a fault to be injected or taken
// back before it answers that this is in progress.
const answerWithin = 10 * time.Second

// Handler serves the protocol.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+executor.PathCapabilities, s.capabilities)
	mux.HandleFunc("GET "+executor.PathFaults, s.list)
	mux.HandleFunc("GET "+executor.PathFault+"{id}", s.get)
	mux.HandleFunc("PUT "+executor.PathFault+"{id}", s.putFault)
	mux.HandleFunc("DELETE "+executor.PathFault+"{id}", s.deleteFault)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.allowed(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "", "show the executor's token: Authorization: Bearer TOKEN")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// allowed compares in constant time, whatever the length.
func (s *Server) allowed(r *http.Request) bool {
	shown := sha256.Sum256([]byte(r.Header.Get("Authorization")))
	want := sha256.Sum256([]byte("Bearer " + s.token))
	return subtle.ConstantTimeCompare(shown[:], want[:]) == 1
}

func (s *Server) capabilities(w http.ResponseWriter, r *http.Request) {
	c := executor.Capabilities{Name: s.name, Types: []executor.Offer{}}
	for _, h := range s.hands {
		offers, err := h.Offers(r.Context())
		if err != nil {
			refuse(w, http.StatusServiceUnavailable, "", err.Error())
			return
		}
		c.Types = append(c.Types, offers...)
	}
	answer(w, http.StatusOK, c)
}

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	list := executor.FaultList{Faults: []executor.Status{}}
	for _, e := range s.book.all(false) {
		list.Faults = append(list.Faults, s.book.status(e))
	}
	answer(w, http.StatusOK, list)
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	id, ok := pathID(w, r)
	if !ok {
		return
	}
	e := s.book.get(id)
	if e == nil {
		refuse(w, http.StatusNotFound, "", fmt.Sprintf("fault %s is not known here", id))
		return
	}
	answer(w, http.StatusOK, s.book.status(e))
}

func (s *Server) putFault(w http.ResponseWriter, r *http.Request) {
	id, ok := pathID(w, r)
	if !ok {
		return
	}
	fault, err := decode(http.MaxBytesReader(w, r.Body, executor.MaxBody))
	if err == nil {
		err = fault.Validate()
	}
	if err != nil {
		refuseFor(w, err)
		return
	}
	e, err := s.put(r.Context(), id, fault)
	if err != nil {
		refuseFor(w, err)
		return
	}
	s.answerAfter(r.Context(), w, e, e.settled)
}

func (s *Server) deleteFault(w http.ResponseWriter, r *http.Request) {
	id, ok := pathID(w, r)
	if !ok {
		return
	}
	e, err := s.remove(id)
	if err != nil {
		refuseFor(w, err)
		return
	}
	s.answerAfter(r.Context(), w, e, e.over)
}

// answerAfter waits a while for the request to complete.
func (s *Server) answerAfter(ctx context.Context, w http.ResponseWriter, e *entry, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
	case <-s.ctx.Done():
	case <-time.After(answerWithin):
	}
	status := s.book.status(e)
	code := http.StatusOK
	if status.State == executor.Injecting || status.State == executor.Recovering {
		code = http.StatusAccepted
	}
	answer(w, code, status)
}

func pathID(w http.ResponseWriter, r *http.Request) (string, bool) {
	id := r.PathValue("id")
	if err := executor.CheckID(id); err != nil {
		refuseFor(w, err)
		return "", false
	}
	return id, true
}

// decode reads exactly one fault. A field that is not known would silently not
// happen.
func decode(body io.Reader) (*executor.Fault, error) {
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	fault := &executor.Fault{}
	if err := decoder.Decode(fault); err != nil {
		var tooLarge *http.MaxBytesError
		var wrongType *json.UnmarshalTypeError
		switch {
		case errors.As(err, &tooLarge):
			return nil, err
		case errors.As(err, &wrongType):
			return nil, &executor.FieldError{Field: wrongType.Field, Message: "a " + wrongType.Value + " is no " + wrongType.Type.String()}
		}
		return nil, &executor.FieldError{Field: "body", Message: err.Error()}
	}
	if decoder.More() {
		return nil, &executor.FieldError{Field: "body", Message: "there is more than one fault"}
	}
	return fault, nil
}

func refuseFor(w http.ResponseWriter, err error) {
	var field *executor.FieldError
	var busy *conflict
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &field):
		refuse(w, http.StatusBadRequest, field.Field, field.Message)
	case errors.As(err, &busy):
		refuse(w, http.StatusConflict, "", busy.message)
	case errors.As(err, &tooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, "body", fmt.Sprintf("it is longer than %d bytes", tooLarge.Limit))
	default:
		refuse(w, http.StatusInternalServerError, "", err.Error())
	}
}

func refuse(w http.ResponseWriter, code int, field, message string) {
	answer(w, code, executor.ErrorBody{Error: executor.ErrorDetail{Field: field, Message: message}})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client is gone if this fails
}
