package envtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// Stored is one object as it stands in etcd.
type Stored struct {
	key, value []byte
}

// Save reads an object behind the API server's back.
func Save(t testing.TB, resource apischema.GroupResource, namespace, name string) Stored {
	t.Helper()
	key := fmt.Appendf(nil, "/registry/%s/%s/%s/%s", resource.Group, resource.Resource, namespace, name)
	var answer struct {
		KVs []struct{ Value []byte }
	}
	etcd(t, "range", map[string][]byte{"key": key}, &answer)
	if len(answer.KVs) != 1 {
		t.Fatalf("etcd has %d values for %s", len(answer.KVs), key)
	}
	return Stored{key, answer.KVs[0].Value}
}

// Restore puts an object back as it was when it was saved, past every rule of the API server: what a restore of etcd from
// a backup does.
func (s Stored) Restore(t testing.TB) {
	t.Helper()
	etcd(t, "put", map[string][]byte{"key": s.key, "value": s.value}, nil)
}

// etcd calls its JSON gateway, in which keys and values are base64, as encoding/json writes []byte.
func etcd(t testing.TB, call string, body map[string][]byte, answer any) {
	t.Helper()
	Config(t)
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	url := server.env.ControlPlane.Etcd.URL.String() + "/v3/kv/" + call
	resp, err := http.Post(url, "application/json", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("POST %s: %s", url, resp.Status)
	}
	if answer != nil {
		if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
			t.Fatal(err)
		}
	}
}
