package apply

import (
	"encoding/json"
	"testing"
)

func TestCovers(t *testing.T) {
	for _, test := range []struct {
		name, have, want string
		covered          bool
	}{
		{"equal", `{"a":1}`, `{"a":1}`, true},
		{"defaulted by the server", `{"a":1,"b":"x"}`, `{"a":1}`, true},
		{"another value", `{"a":2}`, `{"a":1}`, false},
		{"missing", `{}`, `{"a":1}`, false},
		{"kind is not carried by typed objects", `{"a":1}`, `{"kind":"X","apiVersion":"v1","a":1}`, true},
		{"another kind", `{"kind":"Y","a":1}`, `{"kind":"X","a":1}`, false},
		{"nested", `{"a":{"b":{"c":1,"d":2}}}`, `{"a":{"b":{"c":1}}}`, true},
		{"nested missing", `{"a":{"b":{"d":2}}}`, `{"a":{"b":{"c":1}}}`, false},
		{"empty object wanted, absent", `{}`, `{"resources":{}}`, true},
		{"empty list wanted, absent", `{}`, `{"list":[]}`, true},
		{"empty object wanted, a string there", `{"a":"x"}`, `{"a":{}}`, false},
		{"arguments in order", `{"args":["a","b"]}`, `{"args":["b","a"]}`, false},
		{"argument added by another", `{"args":["a","b","c"]}`, `{"args":["a","b"]}`, false},
		{"argument removed", `{"args":["a"]}`, `{"args":["a","b"]}`, false},
		{"container added by a webhook", `{"c":[{"name":"mesh"},{"name":"node","image":"i","x":1}]}`, `{"c":[{"name":"node","image":"i"}]}`, true},
		{"container gone", `{"c":[{"name":"mesh"}]}`, `{"c":[{"name":"node"}]}`, false},
		{"container changed", `{"c":[{"name":"node","image":"j"}]}`, `{"c":[{"name":"node","image":"i"}]}`, false},
		{"rules have no key", `{"rules":[{"verbs":["get"]},{"verbs":["delete"]}]}`, `{"rules":[{"verbs":["get"]}]}`, false},
		{"list wanted, object there", `{"a":{}}`, `{"a":[1]}`, false},
		{"owner references by uid", `{"o":[{"uid":"1","name":"x","blockOwnerDeletion":true}]}`, `{"o":[{"uid":"2","name":"x"}]}`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var have, want any
			if err := json.Unmarshal([]byte(test.have), &have); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			if got := covers(have, want); got != test.covered {
				t.Errorf("covers(%s, %s) = %v", test.have, test.want, got)
			}
		})
	}
}
