package kube

import (
	"strings"
	"testing"
	"time"
)

const log = `{"stage":"ResponseComplete","verb":"update","requestURI":"/apis/x/status?y=1","user":{"username":"system:serviceaccount:a:g-s0"},"requestReceivedTimestamp":"2026-01-01T00:00:10.5Z"}
{"stage":"RequestReceived","verb":"update","requestURI":"/apis/x/status","user":{"username":"system:serviceaccount:a:g-s0"},"requestReceivedTimestamp":"2026-01-01T00:00:11Z"}
{"stage":"ResponseComplete","verb":"get","requestURI":"/apis/x","user":{"username":"system:admin"},"requestReceivedTimestamp":"2026-01-01T00:00:11Z"}
{"stage":"ResponseComplete","verb":"get","requestURI":"/apis/x","user":{"username":"system:serviceaccount:a:g-s0"},"requestReceivedTimestamp":"2026-01-01T00:00:20Z"}
{"stage":"Response`

func at(s int) time.Time { return time.Date(2026, 1, 1, 0, 0, s, 0, time.UTC) }

func TestScanKeepsUserSpanAndFinishedRequests(t *testing.T) {
	got, err := scan(strings.NewReader(log), "system:serviceaccount:a:g-", at(10), at(20))
	if err != nil || len(got) != 1 || got[0].Verb != "update" {
		t.Fatalf("got %v, %v", got, err)
	}
	if s := RequestSummary(append(got, got...)); s != "     2 update /apis/x/status\n" {
		t.Fatalf("summary %q", s)
	}
}

func TestScanRefusesGarbage(t *testing.T) {
	if _, err := scan(strings.NewReader("garbage\n"), "", at(0), at(1)); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Fatalf("got %v", err)
	}
}
