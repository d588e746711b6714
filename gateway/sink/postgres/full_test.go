package postgres_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/gateway/sink/postgres"
)

// TestFullDisk: the disk of the tables is full, an administrator makes room, and nothing is lost or there twice.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a small file system has to be mounted, which takes root")
	}
	p := server(t, downstream.PostgresOptions{})
	disk := filepath.Join(p.Dir, "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=48m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Kill(), unix.Unmount(disk, unix.MNT_DETACH)); err != nil {
			t.Error(err)
		}
	})
	tables := filepath.Join(disk, "tables")
	if err := errors.Join(os.Mkdir(tables, 0o700), p.Own(tables), p.Own(disk)); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"CREATE TABLESPACE small LOCATION '" + tables + "'", "ALTER ROLE postgres SET default_tablespace = small"} {
		if _, err := p.PSQL(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	o := options(t, p)
	if _, _, err := postgres.Migrate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 24<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	w, s := open(t, o), newSource()
	var full error
	held := s.at
	for s.at.Seq < 200_000 && full == nil {
		held = s.at
		full = w.Write(t.Context(), s.next(2000))
	}
	var permanent *sink.PermanentError
	if full == nil || errors.As(full, &permanent) || !strings.Contains(full.Error(), "53100") || !strings.Contains(full.Error(), "No space left on device") {
		t.Fatalf("with a full disk: %v, want one that passes, SQLSTATE 53100", full)
	}
	again := open(t, o)
	if again.Position() != held {
		t.Fatalf("after it the position is %+v, want %+v", again.Position(), held)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s = newSource()
	s.skip(held.Seq)
	if err := again.Write(t.Context(), s.next(2000)); err != nil {
		t.Fatal(err)
	}
	prove(t, p, s.at.Seq)
}
