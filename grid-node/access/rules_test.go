package access

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

const sample = `{"rules": [
  {"subjects": [{"kind": "User", "name": "gateway-7"}, {"kind": "ServiceAccount", "namespace": "trading", "name": "gateway"}], "permissions": ["Submit", "Read"]},
  {"subjects": [{"kind": "Group", "name": "surveillance"}], "permissions": ["Read", "Admin"]},
  {"subjects": [{"kind": "User", "name": "spiffe://bank.example/ns/trading/sa/gateway"}], "permissions": ["Submit"]},
  {"subjects": [{"kind": "User", "name": "system:serviceaccount:risk:reader"}], "permissions": ["Read"]},
  {"subjects": [{"kind": "Group", "name": "system:serviceaccounts:audit"}], "permissions": ["Admin"]},
  {"subjects": [{"kind": "User", "name": "ordergrid-tools"}], "permissions": ["Submit", "Read", "Admin", "Watch", "Sink"]}
]}`

func TestWhoMayDoWhat(t *testing.T) {
	r, err := Parse([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	issued := func(own bool, cn string, organizations []string, uris ...string) *Identity {
		c := &x509.Certificate{Subject: pkix.Name{CommonName: cn, Organization: organizations}}
		for _, u := range uris {
			parsed, err := url.Parse(u)
			if err != nil {
				t.Fatal(err)
			}
			c.URIs = append(c.URIs, parsed)
		}
		return OfCertificate(c, own)
	}
	certificate := func(cn string, organizations []string, uris ...string) *Identity {
		return issued(false, cn, organizations, uris...)
	}
	token := func(user string, groups ...string) *Identity {
		return &Identity{User: user, Groups: groups, Token: true}
	}
	for name, c := range map[string]struct {
		id    *Identity
		want  Permissions
		shown string
	}{
		"no proof":                        {nil, 0, "a client without a certificate and a token"},
		"empty certificate":               {certificate("", nil), 0, "a client without a certificate and a token"},
		"common name":                     {certificate("gateway-7", nil), Submit | Read, `user "gateway-7"`},
		"another common name":             {certificate("gateway-70", nil), 0, `user "gateway-70"`},
		"organization":                    {certificate("alice", []string{"traders", "surveillance"}), Read | Admin, `user "alice"`},
		"organization alone":              {certificate("", []string{"surveillance"}), Read | Admin, `a member of group "surveillance"`},
		"URI":                             {certificate("", nil, "spiffe://bank.example/ns/trading/sa/gateway"), Submit, `user "spiffe://bank.example/ns/trading/sa/gateway"`},
		"all together":                    {certificate("gateway-7", []string{"surveillance"}), Submit | Read | Admin, `user "gateway-7"`},
		"service account":                 {token("system:serviceaccount:trading:gateway"), Submit | Read, "service account trading/gateway"},
		"of another namespace":            {token("system:serviceaccount:staging:gateway"), 0, "service account staging/gateway"},
		"service account as a user":       {token("system:serviceaccount:risk:reader"), Read, "service account risk/reader"},
		"service account by its group":    {token("system:serviceaccount:audit:x", "system:serviceaccounts:audit"), Admin, "service account audit/x"},
		"user of an OpenID provider":      {token("gateway-7"), Submit | Read, `user "gateway-7"`},
		"a namespace made of two parts":   {token("system:serviceaccount:trading:gateway:x"), 0, "service account trading/gateway:x"},
		"certificate makes no account":    {certificate("system:serviceaccount:trading:gateway", nil), 0, "a client without a certificate and a token"},
		"nor a user that is one":          {certificate("system:serviceaccount:risk:reader", nil), 0, "a client without a certificate and a token"},
		"nor a group of them":             {certificate("x", []string{"system:serviceaccounts:audit"}), 0, `user "x"`},
		"nor a URI that is one":           {certificate("x", nil, "system:serviceaccount:risk:reader"), 0, `user "x"`},
		"nor in other letters":            {certificate("x", nil, "SYSTEM:serviceaccount:risk:reader"), 0, `user "x"`},
		"the tools":                       {issued(true, Tools, []string{"ordergrid.dev"}), All &^ Link &^ Query &^ Gateway &^ Risk &^ Write, `user "ordergrid-tools"`},
		"tools by a client's common name": {certificate(Tools, nil), 0, "a client without a certificate and a token"},
		"tools by a client's URI":         {certificate("x", nil, Tools), 0, `user "x"`},
		"tools by its URI alone":          {certificate("", nil, Tools), 0, "a client without a certificate and a token"},
		"tools by a client's group":       {certificate("x", []string{Tools}), 0, `user "x"`},
		"tools by all of a client's":      {certificate(Tools, []string{Tools, "surveillance"}, Tools), Read | Admin, `a member of group "surveillance"`},
		"tools by a URI of nodes' own":    {issued(true, "x", nil, Tools), 0, `user "x"`},
		"tools by a group of nodes' own":  {issued(true, "x", []string{Tools}), 0, `user "x"`},
		"tools by a token's user":         {token(Tools), 0, `user "ordergrid-tools"`},
		"tools by a token's group":        {token("x", Tools), 0, `user "x"`},
		"tools by an account of the name": {token("system:serviceaccount:trading:" + Tools), 0, "service account trading/ordergrid-tools"},
		"a name that would break the log": {certificate("a\nb\x1b[31m"+strings.Repeat("x", 300), nil), 0, `user "a\nb\x1b[31m`},
	} {
		if got := r.Of(c.id); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if s := c.id.String(); !strings.HasPrefix(s, c.shown) || len(s) > 4*maxShown+40 || strings.ContainsAny(s, "\n\x1b") {
			t.Errorf("%s is shown as %q, want %q", name, s, c.shown)
		}
	}
	if p := (*Rules)(nil).Of(token("gateway-7")); p != 0 {
		t.Errorf("no rules give %v", p)
	}
}

// Permissions are checked on every frame.
func TestNeedsCostsNothing(t *testing.T) {
	may, refused := Submit|Read, 0
	if n := testing.AllocsPerRun(100, func() {
		for typ := range 256 {
			if Needs(wire.Type(typ))&^may != 0 {
				refused++
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
	// Query, QueryCancel, ReadLog, ListSinks, ReadSink, Follow, FollowCredit, Advance, LinkOpen, LinkEntries,
	// FixOpen, FixSubmit, FixStep, FixResend, FixHere, ReadExecutions, RegionApply, ReadRecords, Kill, ReadKill,
	// ReadLimits, ReadBook, ReadOrders, Market, Invoke, Stream, StreamSelect, MapOrders, RegionBatch; once more to
	// warm up
	if refused != 29*101 {
		t.Errorf("%d refused, want 29 of each run", refused)
	}
}

func TestRulesRefused(t *testing.T) {
	many := `{"kind":"User","name":"x"}` + strings.Repeat(`,{"kind":"User","name":"x"}`, maxSubjects)
	for text, want := range map[string]string{
		``:                                       "allowed: JSON",
		`[]`:                                     "allowed: JSON",
		`{"rules": []} {}`:                       "data after the rules",
		`{"rule": []}`:                           `unknown field "rule"`,
		`{"rules": [{"permissions": ["Read"]}]}`: "rules[0].subjects: 0 of them, allowed: 1..256",
		`{"rules": [{"subjects": [` + many + `], "permissions": ["Read"]}]}`:                                            "rules[0].subjects: 257 of them",
		`{"rules": [{"subjects": [{"kind": "User", "name": "a"}]}]}`:                                                    "rules[0].permissions: none",
		`{"rules": [{"subjects": [{"kind": "User", "name": "a"}], "permissions": ["read"]}]}`:                           `rules[0].permissions[0]: permission is "read", allowed: Submit, Read, Admin`,
		`{"rules": [{"subjects": [{"kind": "user", "name": "a"}], "permissions": ["Read"]}]}`:                           `kind is "user", allowed: User, Group, ServiceAccount`,
		`{"rules": [{"subjects": [{"kind": "User", "name": ""}], "permissions": ["Read"]}]}`:                            "name has 0 bytes",
		`{"rules": [{"subjects": [{"kind": "User", "name": "a", "namespace": "b"}], "permissions": ["Read"]}]}`:         "allowed: a namespace with ServiceAccount",
		`{"rules": [{"subjects": [{"kind": "ServiceAccount", "name": "a"}], "permissions": ["Read"]}]}`:                 "allowed: a namespace with ServiceAccount",
		`{"rules": [{"subjects": [{"kind": "User", "name": "a"}], "permissions": ["Read"], "notAfter": "2026-01-01"}]}`: `unknown field "notAfter"`,
		`{"rules": [` + strings.Repeat(`{},`, maxRules) + `{}]}`:                                                        "rules: 257 of them",
		strings.Repeat(" ", MaxRulesFile+1):                                                                             "allowed: at most 1048576",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
}

// Parsing always terminates, and never grants permissions by mistake.
func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(`{"rules":[{"subjects":[{"kind":"Group","name":"g"}],"permissions":["Admin"]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Parse(text)
		if (r == nil) == (err == nil) {
			t.Fatalf("%v, %v", r, err)
		}
		if err == nil && r.Of(&Identity{}) != 0 {
			t.Fatal("a client without any name has a permission")
		}
	})
}

// Two identities must not share a quota key, nor one identity have two.
func TestKeysTellIdentitiesApart(t *testing.T) {
	seen := map[string]int{}
	for i, id := range []*Identity{
		nil,
		{User: "a"},
		{User: "a", Token: true},
		{User: "a b"},
		{URIs: []string{"spiffe://a"}},
		{Groups: []string{"a"}},
		{Groups: []string{"a", "b"}},
		{Groups: []string{`a" "b`}},
	} {
		if j, twice := seen[id.Key()]; twice {
			t.Errorf("identities %d and %d have key %q", j, i, id.Key())
		}
		seen[id.Key()] = i
	}
	if a, b := (&Identity{User: "a", Groups: []string{"x"}}), (&Identity{User: "a"}); a.Key() != b.Key() {
		t.Errorf("one user, two keys: %q, %q", a.Key(), b.Key())
	}
}
