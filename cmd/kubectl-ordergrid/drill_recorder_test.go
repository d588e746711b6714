package main

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/pki"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
)

const drillUID = "6f1c1d0e-8a57-4a8e-9d57-0d1c5a7b9e01"

// recorderOf plays the recorder of a drill behind the tunnel: the API server of a test has no pods to connect to.
func recorderOf(t *testing.T, s *stage, answers map[string]string) (*recorderLink, *api.FailoverDrill, *pki.Authority) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := answers[r.URL.Path]
		switch {
		case r.Header.Get("Authorization") != "Bearer secret":
			http.Error(w, "token", http.StatusUnauthorized)
		case !ok:
			http.Error(w, "there is none", http.StatusNotFound)
		case strings.HasPrefix(text, "cut:"): // announces more than it sends
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte(text))
		default:
			_, _ = w.Write([]byte(text))
		}
	}))
	authority, err := pki.New(pkix.Name{CommonName: "drills"}, pki.Period{})
	s.must(err)
	cert, key, err := authority.Issue(pki.Identity{Names: []string{recorder.ServerNameOf(drillUID)}})
	s.must(err)
	pair, err := tls.X509KeyPair(cert, key)
	s.must(err)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
	cluster, err := (&kubeFlags{kubeconfig: s.args[1], namespace: s.ns}).connect()
	s.must(err)
	link := newRecorderLink(cluster)
	link.open = func(_ context.Context, pod string) (string, func(), error) {
		if pod != "net-recorder-x" {
			return "", nil, errors.New("no such pod")
		}
		return server.Listener.Addr().String(), func() {}, nil
	}
	d := &api.FailoverDrill{ObjectMeta: metav1.ObjectMeta{Name: "net", Namespace: s.ns, UID: drillUID}}
	d.Status.Recorder = &api.DrillRecorder{Pod: "net-recorder-x"}
	d.Status.Certificate = &api.DrillCertificate{Verdict: api.DrillPass, SHA256: certificate.Sum([]byte("{}")), HistorySHA256: certificate.Sum([]byte("orders"))}
	return link, d, authority
}

func (s *stage) token(ca []byte) {
	s.must(s.cl.Create(s.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: api.RecorderName("net"), Namespace: s.ns}, Data: map[string][]byte{"token": []byte("secret"), "ca.crt": ca}}))
}

// TestSave: a folder has everything, each file matching its check sum, or does not exist.
func TestSave(t *testing.T) {
	s, ctx := newStage(t), t.Context()
	answers := map[string]string{recorder.PathText: "text", recorder.PathCertificate: "{}", recorder.PathPage: "<html>", recorder.PathHistory: "orders",
		recorder.PathState: `{"counts":{"acknowledged":7,"rejected":1,"unknown":2}}`}
	link, d, authority := recorderOf(t, s, answers)
	folder := t.TempDir()
	if err := link.save(ctx, d, folder); err == nil || !strings.Contains(err.Error(), "token of the recorder") {
		t.Errorf("without a token: %v", err)
	}
	s.token(authority.PEM)
	stranger := d.DeepCopy()
	stranger.UID = types.UID("0" + drillUID[1:])
	if _, err := link.fromRecorder(ctx, stranger, certificate.TextFile); err == nil || !strings.Contains(err.Error(), "certificate is valid for") {
		t.Errorf("the recorder of another drill of that name: %v", err)
	}
	link.close()
	if got := link.orders(ctx, d); got != "7 orders acknowledged, 1 rejected, 2 unknown" {
		t.Errorf("orders %q", got)
	}
	s.must(link.save(ctx, d, folder))
	for name, want := range map[string]string{certificate.TextFile: "text", certificate.JSONFile: "{}", certificate.PageFile: "<html>", certificate.HistoryFile: "orders",
		certificate.SumsFile: certificate.Sum([]byte("orders")) + "  history.gz\n" + certificate.Sum([]byte("{}")) + "  certificate.json\n"} {
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, error %v", name, got, err)
		}
	}
	for name, tc := range map[string]struct{ path, text, want string }{
		"another history":     {recorder.PathHistory, "0rders", "history of net: its sha256 is "},
		"half a history":      {recorder.PathHistory, "cut:", "history of net: GET "},
		"no history":          {recorder.PathHistory, "", "404 Not Found: there is none"},
		"another certificate": {recorder.PathCertificate, "{ }", "certificate of net was changed: its sha256 is "},
	} {
		t.Run(name, func(t *testing.T) {
			kept, folder := answers[tc.path], t.TempDir()
			defer func() { answers[tc.path] = kept }()
			if answers[tc.path] = tc.text; tc.text == "" {
				delete(answers, tc.path)
			}
			if err := link.save(ctx, d, folder); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
			file := certificate.HistoryFile
			if tc.path == recorder.PathCertificate {
				file = certificate.JSONFile
			}
			left, err := filepath.Glob(filepath.Join(folder, file+"*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, error %v", left, err)
			}
		})
	}
	d.Status.Recorder.Pod = "gone"
	if err := link.history(ctx, d, filepath.Join(folder, "h")); err == nil || !strings.Contains(err.Error(), "port-forward to the recorder's pod gone: no such pod; it is kept for spec.ttl") {
		t.Errorf("a recorder that is gone: %v", err)
	}
	if got := link.orders(ctx, d); got != "" {
		t.Errorf("orders of a recorder that is gone: %q", got)
	}
}
