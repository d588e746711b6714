package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
)

// put requests a fault and ensures that it is recovered at the end of the test.
func (s *suite) put(t *testing.T, id string, from *executor.Fault, deadline int) *executor.Fault {
	t.Helper()
	fault := *from
	fault.DeadlineSeconds = deadline
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.Patience)
		defer cancel()
		if _, err := s.client.Delete(ctx, id); err != nil {
			t.Errorf("fault %s may not be recovered: %v", id, err)
			return
		}
		s.until(ctx, t, id, executor.State.Over)
	})
	if _, err := s.client.Put(t.Context(), id, &fault); err != nil {
		t.Fatal(err)
	}
	return &fault
}

// until waits for a fault to be in a state.
func (s *suite) until(ctx context.Context, t *testing.T, id string, is func(executor.State) bool) *executor.Status {
	t.Helper()
	return s.untilStatus(ctx, t, id, func(status *executor.Status) bool { return is(status.State) })
}

func (s *suite) untilStatus(ctx context.Context, t *testing.T, id string, is func(*executor.Status) bool) *executor.Status {
	t.Helper()
	for deadline := time.Now().Add(s.Patience); ; time.Sleep(100 * time.Millisecond) {
		status, err := s.client.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if is(status) {
			return status
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s fault %s is %+v", s.Patience, id, status)
		}
	}
}

func is(want executor.State) func(executor.State) bool {
	return func(got executor.State) bool { return got == want }
}

// life is the life cycle of a fault in a drill.
func (s *suite) life(t *testing.T, from *executor.Fault) {
	ctx, id := t.Context(), s.run+"-life-"+strings.ToLower(from.Type)
	fault := s.put(t, id, from, 600)
	injected := s.until(ctx, t, id, is(executor.Injected))
	if injected.Type != fault.Type || injected.Injected == nil || injected.Deadline == nil {
		t.Errorf("an injected fault without its type, time or deadline: %+v", injected)
	}
	again, err := s.client.Put(ctx, id, fault)
	if err != nil || again.Injected == nil || !again.Injected.Equal(*injected.Injected) {
		t.Errorf("asked for again: %+v, %v; want the same injection", again, err)
	}
	other := *fault
	other.DeadlineSeconds++
	var refused *executor.Error
	if _, err := s.client.Put(ctx, id, &other); !errors.As(err, &refused) || refused.Code != http.StatusConflict {
		t.Errorf("another fault under the same id: %v, want status 409", err)
	}
	all, err := s.client.List(ctx)
	if err != nil || !slices.ContainsFunc(all, func(f executor.Status) bool { return f.ID == id && f.State == executor.Injected }) {
		t.Errorf("the list does not show it injected: %+v, %v", all, err)
	}
	s.witness(t, id, fault)
	if _, err := s.client.Delete(ctx, id); err != nil {
		t.Fatal(err)
	}
	over := s.until(ctx, t, id, executor.State.Over)
	if over.State != executor.Recovered || over.Recovered == nil || !over.Witness.Seen {
		t.Errorf("recovered it is %+v; want Recovered, the time, the witness kept", over)
	}
	if status, err := s.client.Delete(ctx, id); err != nil || status.State != executor.Recovered {
		t.Errorf("recovered again: %+v, %v", status, err)
	}
	if status, err := s.client.Put(ctx, id, fault); err != nil || status.State != executor.Recovered {
		t.Errorf("put again after its recovery: %+v, %v; want Recovered", status, err)
	}
}

func (s *suite) witness(t *testing.T, id string, fault *executor.Fault) {
	t.Helper()
	status := s.untilStatus(t.Context(), t, id, func(status *executor.Status) bool {
		if !status.Witness.Seen && s.Provoke != nil {
			s.Provoke(t, fault)
		}
		return status.Witness.Seen
	})
	if status.Witness.Message == "" {
		t.Errorf("an empty witness: %+v", status.Witness)
	}
}

// deadline waits for the recovery of a fault at its deadline.
func (s *suite) deadline(t *testing.T, from *executor.Fault) {
	id := s.run + "-deadline-" + strings.ToLower(from.Type)
	s.put(t, id, from, 2)
	status := s.until(t.Context(), t, id, executor.State.Over)
	if status.State != executor.Recovered || status.Injected == nil {
		t.Errorf("after its deadline it is %+v; want injected, and Recovered", status)
	}
}

// restart kills the executor while a fault is injected.
func (s *suite) restart(t *testing.T, from *executor.Fault) {
	id := s.run + "-restart-" + strings.ToLower(from.Type)
	s.put(t, id, from, 600)
	before := s.until(t.Context(), t, id, is(executor.Injected))
	s.Restart(t)
	after, err := s.client.Get(t.Context(), id)
	if err != nil || after.State != executor.Injected || after.Injected == nil || !after.Injected.Equal(*before.Injected) {
		t.Errorf("after the executor's restart: %+v, %v; want it injected since %s", after, err, before.Injected)
	}
}

// raw sends requests that the client would not.
func (s *suite) raw(t *testing.T, method, path, authorization, body string) (int, executor.ErrorDetail) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.client.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var answer executor.ErrorBody
	content, err := io.ReadAll(io.LimitReader(resp.Body, executor.MaxBody))
	if err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal(content, &answer) // the caller checks the result
	return resp.StatusCode, answer.Error
}
