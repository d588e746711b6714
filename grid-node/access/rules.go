package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Rules map subjects to permissions. Parse makes them; they are immutable.
type Rules struct {
	users, groups, accounts map[string]Permissions
}

// Limits of a file of rules.
const (
	MaxRulesFile = 1 << 20 // bytes; a ConfigMap holds no more
	maxRules     = 256
	maxSubjects  = 256 // of one rule
	maxName      = 1024
)

// Document is the file of rules, JSON.
type Document struct {
	Rules []Rule `json:"rules"`
}

// Rule grants permissions to subjects.
type Rule struct {
	Subjects    []Subject `json:"subjects"`
	Permissions []string  `json:"permissions"` // Submit, Read, Admin, Watch, Sink, Link, Query, Gateway, Risk, Write
}

// Subject is as in a RoleBinding.
type Subject struct {
	Kind      string `json:"kind"` // User, Group, ServiceAccount
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"` // of a ServiceAccount
}

// Parse reads a file of rules. An unknown field is rejected: it might narrow a rule.
func Parse(text []byte) (*Rules, error) {
	if len(text) > MaxRulesFile {
		return nil, fmt.Errorf("%d bytes, allowed: at most %d", len(text), MaxRulesFile)
	}
	var doc Document
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("allowed: JSON, {\"rules\": [{\"subjects\": [{\"kind\", \"name\", \"namespace\"}], \"permissions\": []}]}: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("data after the rules, allowed: one JSON object")
	}
	return Compile(&doc)
}

// Compile checks the rules and prepares them for lookup.
func Compile(doc *Document) (*Rules, error) {
	r := &Rules{users: map[string]Permissions{}, groups: map[string]Permissions{}, accounts: map[string]Permissions{}}
	if len(doc.Rules) > maxRules {
		return nil, fmt.Errorf("rules: %d of them, allowed: at most %d", len(doc.Rules), maxRules)
	}
	for i, rule := range doc.Rules {
		if n := len(rule.Subjects); n == 0 || n > maxSubjects {
			return nil, fmt.Errorf("rules[%d].subjects: %d of them, allowed: 1..%d", i, n, maxSubjects)
		}
		var p Permissions
		for j, name := range rule.Permissions {
			one, err := parsePermission(name)
			if err != nil {
				return nil, fmt.Errorf("rules[%d].permissions[%d]: %w", i, j, err)
			}
			p |= one
		}
		if p == 0 {
			return nil, fmt.Errorf("rules[%d].permissions: none, allowed: one or more of %s", i, All)
		}
		for j, s := range rule.Subjects {
			if err := r.grant(s, p); err != nil {
				return nil, fmt.Errorf("rules[%d].subjects[%d]: %w", i, j, err)
			}
		}
	}
	return r, nil
}

func (r *Rules) grant(s Subject, p Permissions) error {
	switch {
	case s.Name == "" || len(s.Name) > maxName:
		return fmt.Errorf("name has %d bytes, allowed: 1..%d", len(s.Name), maxName)
	case (s.Kind == "ServiceAccount") != (s.Namespace != ""):
		return fmt.Errorf("kind %.40q with namespace %.80q, allowed: a namespace with ServiceAccount and with nothing else", s.Kind, s.Namespace)
	}
	switch s.Kind {
	case "User":
		r.users[s.Name] |= p
	case "Group":
		r.groups[s.Name] |= p
	case "ServiceAccount":
		r.accounts[s.Namespace+"/"+s.Name] |= p
	default:
		return fmt.Errorf("kind is %.40q, allowed: User, Group, ServiceAccount", s.Kind)
	}
	return nil
}

// Of returns the permissions of a client: none for a nil identity or nil Rules.
func (r *Rules) Of(id *Identity) Permissions {
	if r == nil || id == nil {
		return 0
	}
	p := r.user(id, id.User)
	for _, u := range id.URIs {
		p |= r.user(id, u)
	}
	for _, g := range id.Groups {
		p |= r.groups[g]
	}
	if a := id.account(); a != "" {
		p |= r.accounts[a]
	}
	return p
}

// user returns the permissions of id under a user name. A user of an OpenID provider may
// have any name, even that of the operator's tools.
func (r *Rules) user(id *Identity, name string) Permissions {
	if name == "" || name == Tools && !id.IsTools() {
		return 0
	}
	return r.users[name]
}
