package envtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Stored is one object as stored in etcd.
type Stored struct {
	etcd       string // URL
	key, value []byte
}

// Save reads an object of the tests' API server directly from etcd.
func Save(t testing.TB, resource apischema.GroupResource, namespace, name string) Stored {
	t.Helper()
	Config(t)
	s, err := SaveFrom(server.env.ControlPlane.Etcd.URL.String(), resource, namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Restore is PutBack for tests.
func (s Stored) Restore(t testing.TB) {
	t.Helper()
	if err := s.PutBack(); err != nil {
		t.Fatal(err)
	}
}

// SaveFrom is Save for programs other than tests; etcd is its URL.
func SaveFrom(etcd string, resource apischema.GroupResource, namespace, name string) (Stored, error) {
	key := fmt.Appendf(nil, "/registry/%s/%s/%s/%s", resource.Group, resource.Resource, namespace, name)
	var answer struct {
		KVs []struct{ Value []byte }
	}
	if err := call(etcd, "range", map[string][]byte{"key": key}, &answer); err != nil {
		return Stored{}, err
	}
	if len(answer.KVs) != 1 {
		return Stored{}, fmt.Errorf("etcd has %d values for %s", len(answer.KVs), key)
	}
	return Stored{etcd, key, answer.KVs[0].Value}, nil
}

// PutBack restores the saved state of an object, bypassing all rules of the API server, like a
// restore of etcd from a backup.
func (s Stored) PutBack() error {
	return call(s.etcd, "put", map[string][]byte{"key": s.key, "value": s.value}, nil)
}

// call calls etcd's JSON gateway, in which keys and values are base64, as encoding/json writes []byte.
func call(etcd, name string, body map[string][]byte, answer any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	url := etcd + "/v3/kv/" + name
	resp, err := http.Post(url, "application/json", bytes.NewReader(data))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("POST %s: %s", url, resp.Status)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}

// Text is the object as stored in etcd; custom resources are JSON there.
func (s Stored) Text() string { return string(s.value) }
