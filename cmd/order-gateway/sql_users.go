package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/gateway/sql/server"
	"github.com/ordergrid/ordergrid/internal/reread"
)

// mostUsersBytes bounds a file of users.
const mostUsersBytes = 8 << 20

type sqlUsers = map[string]server.Verifier

// openUsers reads a file of users with passwords, which is read again when it changes.
// Connections go on: a user that is gone is refused at the next login, and its permission is
// that of the rules.
func openUsers(path string) (*reread.File[sqlUsers], error) {
	f := reread.Open("users file", path, mostUsersBytes, func(content []byte, _ sqlUsers) (sqlUsers, error) { return parseUsers(content) })
	return f, f.Err()
}

// parseUsers reads verifiers; no error has one in it.
func parseUsers(raw []byte) (sqlUsers, error) {
	var doc struct {
		Users []struct {
			Name     string `json:"name"`
			Verifier string `json:"verifier"`
		} `json:"users"`
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("allowed: {\"users\": [{\"name\", \"verifier\"}]}: %w", err)
	}
	users := sqlUsers{}
	for i, u := range doc.Users {
		v, err := server.ParseVerifier(u.Verifier)
		switch {
		case err != nil:
			return nil, fmt.Errorf("users[%d]: %w", i, err)
		case u.Name == "" || strings.HasPrefix(u.Name, "system:"):
			return nil, fmt.Errorf("users[%d].name is %q, allowed: a name that does not begin with system:", i, u.Name)
		}
		if _, twice := users[u.Name]; twice {
			return nil, fmt.Errorf("users[%d].name is %q, which is there twice, allowed: once", i, u.Name)
		}
		users[u.Name] = v
	}
	return users, nil
}
