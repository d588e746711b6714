package manager

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestService: only 200 is an answer, or 401 of an operator whose metrics require a token. What needs an API server is
// tested with the chart, by `helm test` and without.
func TestService(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
		case "/guarded":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	secure := httptest.NewTLSServer(server.Config.Handler)
	defer secure.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for _, test := range []struct{ url, result, want string }{
		{"", "", ""},
		{server.URL + "/metrics", server.URL + "/metrics answers", ""},
		{server.URL + "/guarded", server.URL + "/guarded answers, and requires authentication", ""},
		{secure.URL + "/metrics", secure.URL + "/metrics answers", ""},
		{server.URL + "/other", "", "/other answers 503 Service Unavailable; want 200"},
		{gone.URL, "", "the operator's Service does not answer: "},
	} {
		result, err := checker{CheckOptions: CheckOptions{URL: test.url}}.service(t.Context())
		if result != test.result || (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: output %q, error %v; want %q, %q", test.url, result, err, test.result, test.want)
		}
	}
}
