package main

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestRedactText(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"password=hunter2 next", "password=[redacted] next"},
		{`{"apiKey":"abc","shard":1}`, `{"apiKey":"[redacted]","shard":1}`},
		{`msg="{\"token\": \"abc\"}"`, `msg="{\"token\": \"[redacted]\"}"`},
		{"Authorization: Bearer abcdef123456", "Authorization: Bearer [redacted]"},
		{"got eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln now", "got [redacted] now"},
		{"postgres://app:pw@db:5432/x", "postgres://app:[redacted]@db:5432/x"},
		{"-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nnext", "[redacted]\nnext"},
		{"-----BEGIN RSA PRIVATE KEY-----\nMIIE", "[redacted]"},
		{"refused 8=FIX.4.4\x019=100\x0135=D\x0155=IBM\x01 end", "refused [order]"},
		{"clOrdID=o-17 shard=1", "clOrdID=[order] shard=1"},
		{"epoch 4, primary trades-s0-1, 127.0.0.1:7400", "epoch 4, primary trades-s0-1, 127.0.0.1:7400"},
	} {
		if got := redactText(tc.text); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.text, got, tc.want)
		}
	}
}

func TestRedactObject(t *testing.T) {
	const object = `
metadata:
  managedFields: [{manager: hunter2}]
  annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter2, "vendor/api-token": hunter2, plain: kept-a}
spec:
  containers:
  - args: [--password, hunter2, --token=hunter2, --shard, kept-b]
    env:
    - {name: DB_PASSWORD, value: hunter2}
    - {name: FROM, valueFrom: {secretKeyRef: {name: kept-c, key: kept-d}}}
    - {name: GOGC, value: kept-e}
  volumes: [{secret: {secretName: kept-f}}]
  tolerations: [{key: kept-g}]
`
	var v any
	if err := yaml.Unmarshal([]byte(object), &v); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(redactValue(v))
	if err != nil || strings.Contains(string(text), "hunter2") {
		t.Errorf("%v\n%s", err, text)
	}
	for _, kept := range []string{"kept-a", "kept-b", "kept-c", "kept-d", "kept-e", "kept-f", "kept-g"} {
		if !strings.Contains(string(text), kept) {
			t.Errorf("%s is lost:\n%s", kept, text)
		}
	}
}

func FuzzRedactText(f *testing.F) {
	f.Add("token: \"x")
	f.Fuzz(func(t *testing.T, s string) {
		if once := redactText("password=hunter2 " + s); strings.Contains(strings.SplitN(once, " ", 2)[0], "hunter2") {
			t.Error(once)
		}
	})
}
