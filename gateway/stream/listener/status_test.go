package listener

import (
	"encoding/json"
	"testing"
)

// TestStatusBeforeTheFirst: a page that asks before a status is rendered gets one with all fields that are always there. The
// console stopped at one without a rate.
func TestStatusBeforeTheFirst(t *testing.T) {
	full, err := json.Marshal(Status{Partitions: []PartitionStatus{{}}})
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	var s statusPage
	if err := json.Unmarshal(full, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(s.bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for field := range want {
		if _, ok := got[field]; !ok {
			t.Errorf("the first status %s has no %s", s.bytes(), field)
		}
	}
	if got["ready"] != false {
		t.Errorf("the first status is ready: %s", s.bytes())
	}
}
