package manager

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/internal/pki"
)

func written(t *testing.T, name string, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestExecutorsAreVouchedFor: an executor is used over TLS, and receives its token only if the configured authority
// vouches for it.
func TestExecutorsAreVouchedFor(t *testing.T) {
	told := 0
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer secret" {
			told++
		}
		_, _ = w.Write([]byte(`{"name":"lab","types":[{"type":"NodePowerOff"}]}`))
	})
	secure, plain := httptest.NewTLSServer(handler), httptest.NewServer(handler)
	defer secure.Close()
	defer plain.Close()
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	another, err := pki.Load(t.TempDir(), "another")
	if err != nil {
		t.Fatal(err)
	}
	token, ca := written(t, "token", []byte("secret\n")), written(t, "ca.crt", own)
	ask := func(o Options) error {
		if len(o.DrillExecutors) > 0 {
			o.DrillExecutorTokens = []string{"lab=" + token}
		}
		services, err := executors(o)
		if err != nil {
			return err
		}
		_, err = services["lab"].Capabilities(t.Context())
		return err
	}
	for _, test := range []struct {
		name  string
		o     Options
		says  string
		tells int
	}{
		{"by its authority", Options{DrillExecutors: []string{"lab=" + secure.URL}, DrillExecutorCAs: []string{"lab=" + ca}}, "", 1},
		{"by no authority", Options{DrillExecutors: []string{"lab=" + secure.URL}}, "no authority is configured for https://", 0},
		{"by another one", Options{DrillExecutors: []string{"lab=" + secure.URL}, DrillExecutorCAs: []string{"lab=" + written(t, "ca.crt", another.PEM)}}, "x509: certificate signed by unknown authority", 0},
		{"by a file without one", Options{DrillExecutors: []string{"lab=" + secure.URL}, DrillExecutorCAs: []string{"lab=" + token}}, "has no certificate in PEM form", 0},
		{"in plain text", Options{DrillExecutors: []string{"lab=" + plain.URL}}, "is plain http, which exposes the token to the network", 0},
		{"in plain text, as configured", Options{DrillExecutors: []string{"lab=" + plain.URL}, DrillExecutorInsecure: []string{"lab"}}, "", 1},
		{"an authority of an unknown executor", Options{DrillExecutorCAs: []string{"x=" + ca}}, "--drill-executor-ca: there is no executor x", 0},
		{"accepted of none", Options{DrillExecutorInsecure: []string{"x"}}, "--drill-executor-insecure: there is no executor x", 0},
	} {
		told = 0
		err := ask(test.o)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", test.name, err, test.says)
		}
		if told != test.tells {
			t.Errorf("%s: the token was sent %d times", test.name, told)
		}
	}
}
