// Package conformance tests a server of the executor protocol. Implementations call Run from a test of their own:
//
//	conformance.Run(t, conformance.Target{URL: url, Token: token, Faults: []executor.Fault{…}})
package conformance

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
)

// Target is an executor and what it may be tested with.
type Target struct {
	URL, Token string
	// Faults are injected and recovered, each several times, with deadlines set by the tests. If empty, everything but
	// faults is tested.
	Faults []executor.Fault
	// Provoke makes a fault observable, for example by sending packets through it; nil if it is observable by itself.
	Provoke func(t *testing.T, fault *executor.Fault)
	// Restart kills the executor and starts it again at the same address; nil skips the tests of persistence.
	Restart func(t *testing.T)
	// Patience is how long an injection or a recovery may take; 0 is a minute.
	Patience time.Duration
}

// suite is a target with what the tests need.
type suite struct {
	Target
	client *executor.Client
	run    string // makes ids unique per run: an executor remembers earlier ones
}

// Run tests a target. Injected faults are recovered, also by a test that fails.
func Run(t *testing.T, target Target) {
	t.Helper()
	if target.Patience == 0 {
		target.Patience = time.Minute
	}
	client, err := executor.NewClient(target.URL, target.Token, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &suite{Target: target, client: client, run: fmt.Sprintf("conformance-%x", time.Now().UnixNano())}
	t.Run("capabilities", s.capabilities)
	t.Run("token", s.token)
	t.Run("unknown", s.unknown)
	t.Run("hostile", s.hostile)
	t.Run("deleted before put", s.deletedBeforePut)
	for i := range target.Faults {
		fault := &target.Faults[i]
		t.Run(fmt.Sprintf("%s-%d", fault.Type, i), func(t *testing.T) {
			t.Run("life", func(t *testing.T) { s.life(t, fault) })
			t.Run("deadline", func(t *testing.T) { s.deadline(t, fault) })
			if target.Restart != nil {
				t.Run("restart", func(t *testing.T) { s.restart(t, fault) })
			}
		})
	}
}

func (s *suite) capabilities(t *testing.T) {
	c, err := s.client.Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c.Name == "" {
		t.Error("the executor has no name")
	}
	offered := map[string]bool{}
	for i, offer := range c.Types {
		if !slices.Contains(executor.Types(), offer.Type) || offered[offer.Type] {
			t.Errorf("types[%d].type is %q, which is unknown or a duplicate", i, offer.Type)
		}
		offered[offer.Type] = true
	}
	for _, fault := range s.Faults {
		if !offered[fault.Type] {
			t.Errorf("%s is to be tested and is not offered", fault.Type)
		}
	}
}

func (s *suite) token(t *testing.T) {
	for _, token := range []string{"", "Bearer ", "Bearer " + s.Token + "x", "Basic " + s.Token, s.Token} {
		for _, path := range []string{executor.PathCapabilities, executor.PathFaults, executor.PathFault + "a"} {
			if code, _ := s.raw(t, http.MethodGet, path, token, ""); code != http.StatusUnauthorized {
				t.Errorf("GET %s with authorization %q: status %d, want 401", path, token, code)
			}
		}
	}
}

func (s *suite) unknown(t *testing.T) {
	if _, err := s.client.Get(t.Context(), s.run+"-unknown"); !errors.Is(err, executor.ErrUnknown) {
		t.Errorf("a fault that was never requested: %v, want status 404", err)
	}
}

// hostile sends requests that no client of this package would.
func (s *suite) hostile(t *testing.T) {
	for _, c := range []struct{ name, id, body, field string }{
		{"nothing", "a", ``, ""},
		{"no JSON", "a", `{`, ""},
		{"a list", "a", `[]`, ""},
		{"an unknown field", "a", `{"type":"NodePowerOff","nodes":["n"],"deadlineSeconds":5,"force":true}`, ""},
		{"two faults", "a", `{"type":"NodePowerOff","nodes":["n"],"deadlineSeconds":5}{}`, ""},
		{"no type", "a", `{"deadlineSeconds":5}`, "type"},
		{"an unknown type", "a", `{"type":"Meteorite","deadlineSeconds":5}`, "type"},
		{"no deadline", "a", `{"type":"NodePowerOff","nodes":["n"]}`, "deadlineSeconds"},
		{"a deadline in words", "a", `{"type":"NodePowerOff","nodes":["n"],"deadlineSeconds":"soon"}`, ""},
		{"an option for a node", "a", `{"type":"NodePowerOff","nodes":["--all"],"deadlineSeconds":5}`, "nodes[0]"},
		{"an unknown node", "a", `{"type":"NodePowerOff","nodes":["no-such-node-anywhere"],"deadlineSeconds":5}`, ""},
		{"an id with capitals", "A", `{"type":"NodePowerOff","nodes":["n"],"deadlineSeconds":5}`, "id"},
		{"an id too long", strings.Repeat("a", executor.MaxID+1), `{"type":"NodePowerOff","nodes":["n"],"deadlineSeconds":5}`, "id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := c.id
			if id == "a" {
				id = s.run + "-hostile"
			}
			code, detail := s.raw(t, http.MethodPut, executor.PathFault+id, "Bearer "+s.Token, c.body)
			if code != http.StatusBadRequest || detail.Message == "" {
				t.Errorf("status %d, %+v; want 400 with a message", code, detail)
			}
			if c.field != "" && detail.Field != c.field {
				t.Errorf("the error is of field %q, want %q", detail.Field, c.field)
			}
			if _, err := s.client.Get(t.Context(), s.run+"-hostile"); !errors.Is(err, executor.ErrUnknown) {
				t.Errorf("a refused fault is remembered: %v", err)
			}
		})
	}
	long := `{"type":"` + strings.Repeat("x", executor.MaxBody) + `"}`
	if code, _ := s.raw(t, http.MethodPut, executor.PathFault+s.run+"-long", "Bearer "+s.Token, long); code != http.StatusRequestEntityTooLarge {
		t.Errorf("a body over %d bytes: status %d, want 413", executor.MaxBody, code)
	}
}

// deletedBeforePut is a PUT that was overtaken by its own DELETE.
func (s *suite) deletedBeforePut(t *testing.T) {
	id := s.run + "-late"
	status, err := s.client.Delete(t.Context(), id)
	if err != nil || status.State != executor.Recovered {
		t.Fatalf("deleting an unknown fault: %+v, %v; want Recovered", status, err)
	}
	for i := range s.Faults {
		fault := s.Faults[i]
		fault.DeadlineSeconds = 60
		status, err = s.client.Put(t.Context(), id, &fault)
		if err != nil || status.State != executor.Recovered || status.Injected != nil {
			t.Errorf("putting it afterwards: %+v, %v; want Recovered, and not injected", status, err)
		}
	}
}
