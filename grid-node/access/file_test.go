package access

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A file that cannot be read leaves the previous rules in use; without previous rules all
// clients are rejected.
func TestFileIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	// As the kubelet does it: the name is a symbolic link that is replaced.
	path := filepath.Join(dir, "rules.json")
	put := func(text string) {
		t.Helper()
		target, err := os.CreateTemp(dir, "v*")
		if err == nil {
			_, err = target.WriteString(text)
		}
		if err == nil {
			err = target.Close()
		}
		if err == nil {
			err = os.Symlink(target.Name(), path+".new")
		}
		if err == nil {
			err = os.Rename(path+".new", path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	bob := &Identity{User: "bob"}
	f := Open(path)
	if f.Err() == nil || f.Rules().Of(bob) != 0 || !f.Read().IsZero() {
		t.Fatalf("no file: %v, %v, read %v", f.Err(), f.Rules().Of(bob), f.Read())
	}
	ctx, cancel := context.WithCancel(t.Context())
	changed := make(chan struct{}, 10)
	done := make(chan struct{})
	go func() { f.Watch(ctx, time.Millisecond, func() { changed <- struct{}{} }); close(done) }()
	for _, c := range []struct {
		text string
		want Permissions
		err  string
	}{
		{`{"rules": [{"subjects": [{"kind": "User", "name": "bob"}], "permissions": ["Read"]}]}`, Read, ""},
		{`{"rules": [{"subjects": [{"kind": "User", "name": "bob"}], "permissions": ["Submit"]}]}`, Submit, ""},
		{`{"rules": [{"subjects"`, Submit, "authorization file"},
		{`{"rules": []}`, 0, ""},
	} {
		before := f.Read()
		put(c.text)
		<-changed
		if later := f.Read().After(before); later != (c.err == "") {
			t.Errorf("%s: read at %v, before at %v: it is when the rules in use were read", c.text, f.Read(), before)
		}
		if err := f.Err(); (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", c.text, err, c.err)
		}
		if p := f.Rules().Of(bob); p != c.want {
			t.Errorf("%s: %v, want %v", c.text, p, c.want)
		}
	}
	cancel()
	<-done
}
