package journal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/journal"
)

// TestLock: a directory has one writer, and another one when that has ended.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pod-0")
	release, err := journal.Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	at, cancel := context.WithCancel(t.Context())
	cancel()
	want := fmt.Sprintf("is locked by process %d,", os.Getpid())
	if _, err := journal.Lock(at, path); err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("a second writer: %v, want %s", err, want)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if release, err = journal.Lock(at, path); err != nil {
		t.Fatalf("after the first has ended: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
}
