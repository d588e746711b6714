package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// SetSpec changes the spec of a record, as kubectl would: change gets a copy of the
// present one. The partition of a record cannot change. The record gets a new version and
// watchers see it.
func (s *Store) SetSpec(name string, change func(*arbiter.Spec) error) (arbiter.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.get(name)
	if err != nil {
		return r, err
	}
	spec := r.Spec
	if spec.Restore != nil {
		point := *spec.Restore
		spec.Restore = &point
	}
	if err := change(&spec); err != nil {
		return r, err
	}
	if err := checkSpec(r.Spec, spec); err != nil {
		return r, err
	}
	if reflect.DeepEqual(spec, r.Spec) {
		return r, nil
	}
	r.Spec = spec
	s.put(r)
	return s.get(name)
}

func checkSpec(old, next arbiter.Spec) error {
	switch {
	case next.Grid != old.Grid || next.Partition != old.Partition:
		return arbiter.Refused("grid and partition say which partition this is and never change; leave them out")
	case !reflect.DeepEqual(next.Restore, old.Restore):
		return arbiter.Refused("restore says what the first claim of the record began with and never changes; leave it out")
	case next.Shard < 0:
		return arbiter.Refused("shard: value %d, allowed: 0 or more", next.Shard)
	case next.Replicas < 1 || next.Replicas > wire.MaxCopies:
		return arbiter.Refused("replicas: value %d, allowed: 1..%d", next.Replicas, wire.MaxCopies)
	case next.MaxInSync != 0 && (next.MaxInSync < next.Replicas || next.MaxInSync > wire.MaxCopies):
		return arbiter.Refused("maxInSync: value %d, allowed: %d..%d, or 0 for as many as replicas", next.MaxInSync, next.Replicas, wire.MaxCopies)
	case len(next.Pods) != 0 && !podsAllowed(next):
		return arbiter.Refused("pods: value %.200q, allowed: %d..%d different names of pods, or none for every pod", next.Pods, next.Replicas, arbiter.MaxMembers)
	case next.MinInSync < 1 || next.MinInSync > next.Replicas:
		return arbiter.Refused("minInSync: value %d, allowed: 1..%d", next.MinInSync, next.Replicas)
	case next.PreferredPod != "" && !isPodName(next.PreferredPod):
		return arbiter.Refused("preferredPod: value %.80q, allowed: a pod of the shard, or empty", next.PreferredPod)
	case next.Standby != old.Standby:
		return arbiter.Refused("standby says what the first claim made of the record and never changes; leave it out")
	case next.CheckSite() != nil:
		return arbiter.Refused("%v", next.CheckSite())
	case next.CheckLearnerRate() != nil:
		return arbiter.Refused("%v", next.CheckLearnerRate())
	}
	return nil
}

func podsAllowed(s arbiter.Spec) bool {
	for i, pod := range s.Pods {
		if !isPodName(pod) || slices.Contains(s.Pods[:i], pod) {
			return false
		}
	}
	return len(s.Pods) >= s.Replicas && len(s.Pods) <= arbiter.MaxMembers
}

// isPodName reports whether a member id can be made of s.
func isPodName(s string) bool {
	return s != "" && len(s) <= 63 && !strings.ContainsAny(s, "/ \t\n\"\\")
}

// serveSpec updates the given fields of a spec and leaves the others.
func (s *Store) serveSpec(w http.ResponseWriter, req *http.Request) {
	var body json.RawMessage
	if !decode(w, req, &body, "one object with fields of a spec") {
		return
	}
	name := req.PathValue("name")
	now, err := s.SetSpec(name, func(spec *arbiter.Spec) error {
		dec := json.NewDecoder(strings.NewReader(string(body)))
		dec.DisallowUnknownFields()
		if err := dec.Decode(spec); err != nil || !strings.HasPrefix(strings.TrimSpace(string(body)), "{") {
			return fmt.Errorf("%w: body: allowed: one object with fields of a spec, for example {\"preferredPod\": \"dev-s0-1\"}", errors.Join(errBody, err))
		}
		return nil
	})
	if errors.Is(err, errBody) {
		answer(w, http.StatusBadRequest, problem{Message: strings.ReplaceAll(err.Error(), "\n", ": ")})
		return
	}
	s.reply(w, now, name, err)
}

var errBody = errors.New("not a spec")
