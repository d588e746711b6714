package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file of users that is wrong changes nothing and is told; one that is right again is used.
func TestUsersAreReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const verifier = "SCRAM-SHA-256$4096:c2FsdHNhbHRzYWx0c2FsdA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	user := func(name string) string {
		return `{"users": [{"name": "` + name + `", "verifier": "` + verifier + `"}]}`
	}
	write(user("pat"))
	f, err := openUsers(path)
	if err != nil {
		t.Fatal(err)
	}
	failure := func() string {
		if err := f.Err(); err != nil {
			return err.Error()
		}
		return ""
	}
	has := func(name string) bool { _, is := f.Value()[name]; return is }
	for _, c := range []struct {
		text, known, failure string
		changed              bool
	}{
		{user("pat"), "pat", "", false},
		{user("sam"), "sam", "", true},
		{`{"users": [{"name": "", "verifier": "` + verifier + `"}]}`, "sam", `users[0].name is ""`, true},
		{`{"users": [{"name": "kim", "verifier": "s3cret"}]}`, "sam", "users[0]", true},
		{user("kim"), "kim", "", true},
	} {
		write(c.text)
		if changed := f.Reload(); changed != c.changed || !has(c.known) || len(f.Value()) != 1 || !strings.Contains(failure(), c.failure) || c.failure == "" && failure() != "" {
			t.Errorf("%s: changed %t, users %d, failure %q", c.text, changed, len(f.Value()), failure())
		}
		if strings.Contains(failure(), "s3cret") {
			t.Error("the failure has a verifier in it")
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if !f.Reload() || !has("kim") || failure() == "" {
		t.Errorf("a file that is gone: %q", failure())
	}
}
