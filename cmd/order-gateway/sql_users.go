package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/gateway/sql/server"
)

// usersFile is a file of users with passwords, which is read again when it changes.
type usersFile struct {
	path  string
	state atomic.Pointer[usersState]
}

type usersState struct {
	raw   []byte
	users map[string]server.Verifier
	err   string // why the file as it is now is not in use; no verifier is in it
}

func openUsers(path string) (*usersFile, error) {
	f := &usersFile{path: path}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	users, err := sqlUsers(path, raw)
	if err != nil {
		return nil, err
	}
	f.state.Store(&usersState{raw: raw, users: users})
	return f, nil
}

func (f *usersFile) users() map[string]server.Verifier { return f.state.Load().users }

// failure is why the file is not in use as it is now; empty: it is.
func (f *usersFile) failure() string { return f.state.Load().err }

// watch reads the file again until ctx ends. Connections go on: a user that is gone is refused at the next login, and its
// permission is that of the rules.
func (f *usersFile) watch(ctx context.Context, every time.Duration, log *slog.Logger) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if f.reload() {
				log.Info("users were read again", "error", f.failure())
			}
		}
	}
}

// reload reads the file and reports whether anything changed.
func (f *usersFile) reload() bool {
	old := f.state.Load()
	next := &usersState{raw: old.raw, users: old.users}
	raw, err := os.ReadFile(f.path)
	if err == nil && !bytes.Equal(raw, old.raw) {
		var users map[string]server.Verifier
		if users, err = sqlUsers(f.path, raw); err == nil {
			next.raw, next.users = raw, users
		}
	}
	if err != nil {
		next.err = err.Error()
	}
	f.state.Store(next)
	return next.err != old.err || !bytes.Equal(next.raw, old.raw)
}

// sqlUsers reads verifiers; no error has one in it.
func sqlUsers(path string, raw []byte) (map[string]server.Verifier, error) {
	var doc struct {
		Users []struct {
			Name     string `json:"name"`
			Verifier string `json:"verifier"`
		} `json:"users"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("%s: allowed: {\"users\": [{\"name\", \"verifier\"}]}: %w", path, err)
	}
	users := map[string]server.Verifier{}
	for i, u := range doc.Users {
		v, err := server.ParseVerifier(u.Verifier)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: users[%d]: %w", path, i, err)
		case u.Name == "" || strings.HasPrefix(u.Name, "system:"):
			return nil, fmt.Errorf("%s: users[%d].name is %q, allowed: a name that does not begin with system:", path, i, u.Name)
		}
		if _, twice := users[u.Name]; twice {
			return nil, fmt.Errorf("%s: users[%d].name is %q, which is there twice, allowed: once", path, i, u.Name)
		}
		users[u.Name] = v
	}
	return users, nil
}
