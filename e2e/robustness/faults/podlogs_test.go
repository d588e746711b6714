package faults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A pod's containers come and go, files are renamed and removed: what was written to
// them is there once, in order, by pod.
func TestPodLogsOutliveThePods(t *testing.T) {
	root, out := t.TempDir(), filepath.Join(t.TempDir(), "logs")
	folder := func(pod, uid string) string {
		dir := filepath.Join(root, "n1", "pods", "ns_"+pod+"_"+uid, "grid-node")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	add := func(dir, name, text string) {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	kept := func(pod string) string {
		b, _ := os.ReadFile(filepath.Join(out, pod+".log")) // not there yet: empty
		return string(b)
	}
	await := func(pod, want string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); kept(pod) != want; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s.log is %q, want %q", pod, kept(pod), want)
			}
		}
	}
	a, b := folder("rob-s0-0", "u1"), folder("rob-s0-1", "u2")
	add(a, "0.log", "one\n")
	l, err := followPodLogs(filepath.Join(root, "*", "pods", "ns_*", "*", "*.log*"), out)
	if err != nil {
		t.Fatal(err)
	}
	await("rob-s0-0", "one\n")
	// The kubelet renames a long file and begins anew; the first one may still grow.
	if err := os.Rename(filepath.Join(a, "0.log"), filepath.Join(a, "0.log.20261121")); err != nil {
		t.Fatal(err)
	}
	add(a, "0.log.20261121", "two\n")
	await("rob-s0-0", "one\ntwo\n")
	add(a, "1.log", "three\n")
	await("rob-s0-0", "one\ntwo\nthree\n")
	if err := os.RemoveAll(filepath.Dir(a)); err != nil {
		t.Fatal(err)
	}
	add(b, "0.log", "other\n")
	again := folder("rob-s0-0", "u3") // the next pod of that name
	add(again, "0.log", "four\n")
	if err := l.Close(); err != nil { // takes what came since the last look
		t.Fatal(err)
	}
	if got := kept("rob-s0-0"); got != "one\ntwo\nthree\nfour\n" {
		t.Errorf("rob-s0-0.log is %q", got)
	}
	if got := kept("rob-s0-1"); got != "other\n" {
		t.Errorf("rob-s0-1.log is %q", got)
	}
}

// A failed read is reported once.
func TestPodLogsSayWhatIsMissing(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "ns_p_u", "c")
	if err := os.MkdirAll(filepath.Join(dir, "0.log"), 0o755); err != nil { // a directory
		t.Fatal(err)
	}
	l, err := followPodLogs(filepath.Join(root, "*", "*", "*.log"), filepath.Join(root, "out"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("got %v", err)
	}
}
