package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

// savedDrill keeps a drill of 1,000 orders and one kill as "drill run --out" does; the last lost orders of the log are
// in no copy.
func savedDrill(t *testing.T, lost int) (folder string) {
	t.Helper()
	const ms = int64(time.Millisecond)
	h := &history.History{Scenario: "drill", Started: time.Date(2026, 11, 21, 15, 0, 0, 0, time.UTC), Rate: 1000, Replicas: 1, Partitions: []wire.PartitionID{0}, Nodes: []history.Node{{Pod: "a"}}}
	s := history.Stream{ID: fixorder.ID{Run: 5}, Node: -1, Sessions: 1}
	var log []history.Entry
	for i := range int64(1000) {
		at := (i + 1) * ms
		s.Orders = append(s.Orders, load.Order{T1: at, T2: at, T3: at + ms/2, Seq: uint64(i + 1), Epoch: 1, Copies: 1, Fate: load.Acked})
		e := history.Entry{Seq: uint64(i + 1), Epoch: 1, Lineage: 1, Hash: uint64(1000 + i), Index: i}
		if i > 0 {
			e.Prev = log[i-1].Hash
		}
		log = append(log, e)
	}
	h.Streams, h.Logs = []history.Stream{s}, []history.Log{{Where: "a/1", InSync: true, Primary: true, Entries: log[:1000-lost]}}
	h.Reps = []history.Rep{{Number: 1, What: "PodKill a", Partitions: h.Partitions, Ready: 100 * ms, From: 400 * ms, To: 401 * ms, Healed: 401 * ms, Served: 420 * ms, Redundant: 450 * ms}}
	h.Calm = []history.Span{{From: 100 * ms, To: 400 * ms}}
	h.Drill = &history.Drill{Judged: h.Started.Add(3 * time.Second), Context: recorder.Context{Drill: "ns/d", Seed: 3, StepsAsked: 1},
		Faults: []history.Fault{{Step: recorder.Step{Repetition: 1, Fault: "kill", Type: "PodKill", Provider: "ChaosMesh"}, Witness: recorder.Witness{State: recorder.Seen, Message: "uid is gone"}}}}
	folder = t.TempDir()
	path := filepath.Join(folder, certificate.HistoryFile)
	if err := h.Save(path); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestDrillValidate: a saved drill gives its verdict again without a cluster, but not if it was changed.
func TestDrillValidate(t *testing.T) {
	for lost, code := range map[int]int{0: 0, 3: exitBroken} {
		folder, out := savedDrill(t, lost), &lockedBuffer{}
		wantCode(t, runIn(t.Context(), out, "drill", "validate", folder), code)
		if !strings.Contains(out.String(), folder+": no certificate.json beside the history: nothing to compare with") {
			t.Errorf("lost %d:\n%s", lost, out)
		}
		// The certificate beside it agrees, until a byte of it is changed.
		json := &lockedBuffer{}
		wantCode(t, runIn(t.Context(), json, "drill", "validate", filepath.Join(folder, certificate.HistoryFile), "-o", "json"), code)
		canonical := json.String()[:strings.LastIndex(json.String(), "}")+2]
		for _, tc := range []struct {
			text, want string
			code       int
		}{
			{canonical, "history, certificate and check sums agree", code},
			{strings.Replace(canonical, `"created": 1000`, `"created": 1001`, 1), folder + ": ", exitFailed},
		} {
			files := map[string]string{certificate.JSONFile: tc.text, certificate.SumsFile: sums(t, folder, tc.text)}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			out := &lockedBuffer{}
			wantCode(t, runIn(t.Context(), out, "drill", "validate", folder), tc.code)
			if !strings.Contains(out.String(), tc.want) {
				t.Errorf("lost %d, want %s:\n%s", lost, tc.want, out)
			}
		}
	}
	if _, err := run("drill", "validate", filepath.Join(t.TempDir(), "none")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("nothing to validate: %v", err)
	}
}

// sums are the check sums of a folder's history and of a certificate.
func sums(t *testing.T, folder, json string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, certificate.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	return certificate.Sum(data) + "  " + certificate.HistoryFile + "\n" + certificate.Sum([]byte(json)) + "  " + certificate.JSONFile + "\n"
}
