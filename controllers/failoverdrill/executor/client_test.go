package executor

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// answering is a server that gives every request one answer.
func answering(t *testing.T, code int, body string) *Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("the token came as %q", r.Header.Get("Authorization"))
		}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	c, err := NewClient(server.URL+"/", "secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name string
		code int
		body string
		says string // of the error; empty if the answer is good
	}{
		{"good", 200, `{"id":"a","state":"Injected","witness":{"seen":true,"counters":{"held":3}}}`, ""},
		{"not yet", 202, `{"id":"a","state":"Injecting","witness":{"seen":false}}`, ""},
		{"of another fault", 200, `{"id":"b","state":"Injected"}`, `id: "b", asked for was "a"`},
		{"a state of another protocol", 200, `{"id":"a","state":"Running"}`, `state: "Running"`},
		{"no JSON", 200, `<html>`, "is this an executor?"},
		{"too long", 200, strings.Repeat(" ", MaxBody+1), "longer than"},
		{"refused with a field", 400, `{"error":{"field":"pods[0].ip","message":"no address"}}`, "status 400: pods[0].ip: no address"},
		{"refused without a body", 500, ``, "status 500"},
		{"refused in prose", 502, "bad\ngateway", `"bad\ngateway"`},
		{"sent elsewhere", 307, ``, "status 307"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := answering(t, c.code, c.body)
			_, err := client.Get(t.Context(), "a")
			switch {
			case c.says == "" && err != nil:
				t.Errorf("error: %v", err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("error is %v, want one with %q", err, c.says)
			case c.says != "" && !strings.Contains(err.Error(), client.URL()+"/v1/faults/a"):
				t.Errorf("the error does not name the address: %v", err)
			}
		})
	}
}

func TestUnknownFaultIsReported(t *testing.T) {
	_, err := answering(t, 404, `{"error":{"message":"no such fault"}}`).Get(t.Context(), "a")
	if !errors.Is(err, ErrUnknown) {
		t.Errorf("error is %v", err)
	}
	if _, err := answering(t, 500, ``).Get(t.Context(), "a"); errors.Is(err, ErrUnknown) {
		t.Error("a broken executor counts as one that does not know the fault")
	}
}

// TestNothingWrongIsSent checks what the client refuses before it sends a request.
func TestNothingWrongIsSent(t *testing.T) {
	client := answering(t, 200, `{}`)
	bad := delay()
	bad.Pods[0].UID = ""
	if _, err := client.Put(t.Context(), "a", bad); err == nil || !strings.Contains(err.Error(), "pods[0].uid") {
		t.Errorf("an invalid fault: %v", err)
	}
	if _, err := client.Delete(t.Context(), "../capabilities"); err == nil || !strings.Contains(err.Error(), "id:") {
		t.Errorf("an id with a path: %v", err)
	}
	if _, err := answering(t, 200, `{"faults":[{"id":"a","state":"?"}]}`).List(t.Context()); err == nil || !strings.Contains(err.Error(), "faults[0].state") {
		t.Errorf("a list with an unknown state: %v", err)
	}
}

func TestNewClient(t *testing.T) {
	for _, c := range []struct{ url, token, says string }{
		{"http://10.0.0.1:9700", "x", ""},
		{"https://bmc.example/drills/", "x", ""},
		{"10.0.0.1:9700", "x", "http"},
		{"http://", "x", "http://HOST:PORT"},
		{"ftp://h", "x", "http://HOST:PORT"},
		{"http://user:pw@h", "x", "http://HOST:PORT"},
		{"http://h?x=1", "x", "http://HOST:PORT"},
		{"http://h", "", "token"},
		{"http://h", "a\nb", "token"},
	} {
		_, err := NewClient(c.url, c.token, nil)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q, %q: %v", c.url, c.token, err)
		}
	}
}
