// Package pod is a probe's channel to the operator from inside a Job: one ConfigMap of its own,
// first with "ready" and then with the result, and one of the operator's with the start time.
//
// It uses the API server's plain REST with the pod's service account: four requests in the life of
// a pod do not justify a client library in the image.
package pod

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Keys of the ConfigMaps.
const (
	KeyReady   = "ready"       // own: connected and able to start
	KeyResult  = "result.json" // own: a report.Result
	KeyError   = "error"       // own: why there is no result
	KeyStartAt = "startAt"     // the operator's: RFC 3339 with nanoseconds
)

// HTTPPort of a probe pod serves /metrics while it runs.
const HTTPPort = 9401

// MaxResult is the space in a ConfigMap (1 MiB) without its metadata.
const MaxResult = 1<<20 - 8<<10

// accountDir is where Kubernetes mounts the pod's service account.
const accountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// Config of a Channel. Zero fields are taken from the pod's environment.
type Config struct {
	Probe     string // name of the OrderProbe
	ProbeUID  string // its UID: the ConfigMap is deleted with the OrderProbe; "" sets no owner
	Index     int    // of this probe
	Namespace string
	// Server is the API server's URL; AccountDir holds token and ca.crt.
	Server, AccountDir string
}

// Channel is the connection to the API server.
type Channel struct {
	cfg  Config
	http *http.Client
	data map[string]string // of the own ConfigMap
}

// New prepares a channel; it makes no request.
func New(cfg Config) (*Channel, error) {
	if cfg.AccountDir == "" {
		cfg.AccountDir = accountDir
	}
	if cfg.Server == "" {
		server, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if server == "" || port == "" {
			return nil, errors.New("KUBERNETES_SERVICE_HOST is not set: order-probe pod runs inside a Kubernetes pod; use order-probe run elsewhere")
		}
		cfg.Server = "https://" + net.JoinHostPort(server, port)
	}
	if cfg.Namespace == "" {
		b, err := os.ReadFile(filepath.Join(cfg.AccountDir, "namespace"))
		if err != nil {
			return nil, fmt.Errorf("namespace: not given and not mounted: %w", err)
		}
		cfg.Namespace = strings.TrimSpace(string(b))
	}
	if cfg.Probe == "" || cfg.Index < 0 {
		return nil, fmt.Errorf("probe %q index %d: needs the name of the OrderProbe and an index of 0 or more", cfg.Probe, cfg.Index)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}
	if ca, err := os.ReadFile(filepath.Join(cfg.AccountDir, "ca.crt")); err == nil {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("%s/ca.crt holds no certificate", cfg.AccountDir)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	return &Channel{cfg: cfg, http: &http.Client{Transport: transport, Timeout: 10 * time.Second}, data: map[string]string{}}, nil
}

// Name of the ConfigMap of this probe.
func (c *Channel) Name() string { return fmt.Sprintf("%s-%d", c.cfg.Probe, c.cfg.Index) }

// Ready reports that this probe is connected and can start.
func (c *Channel) Ready(ctx context.Context) error {
	return c.put(ctx, KeyReady, time.Now().UTC().Format(time.RFC3339Nano))
}

// Result submits the result.
func (c *Channel) Result(ctx context.Context, b []byte) error {
	if len(b) > MaxResult {
		return fmt.Errorf("result is %d bytes, a ConfigMap holds %d: use fewer rates or repeats", len(b), MaxResult)
	}
	return c.put(ctx, KeyResult, string(b))
}

// Failed reports why there will be no result.
func (c *Channel) Failed(ctx context.Context, cause error) error {
	return c.put(ctx, KeyError, cause.Error())
}

// StartAt waits for the operator's start time.
func (c *Channel) StartAt(ctx context.Context) (time.Time, error) {
	path := c.path(c.cfg.Probe + "-run")
	var last error
	for {
		var m configMap
		err := c.do(ctx, http.MethodGet, path, "", nil, &m)
		var status *statusError
		switch {
		case err == nil && m.Data[KeyStartAt] != "":
			t, err := time.Parse(time.RFC3339Nano, m.Data[KeyStartAt])
			if err != nil {
				return t, fmt.Errorf("ConfigMap %s-run key %s: %w", c.cfg.Probe, KeyStartAt, err)
			}
			return t, nil
		case errors.As(err, &status) && status.code == http.StatusForbidden:
			return time.Time{}, err // waiting does not help
		case err != nil:
			last = err // not there yet, or the API server is busy
		}
		select {
		case <-ctx.Done():
			return time.Time{}, errors.Join(fmt.Errorf("wait for ConfigMap %s-run key %s: %w", c.cfg.Probe, KeyStartAt, ctx.Err()), last)
		case <-time.After(250 * time.Millisecond):
		}
	}
}

type configMap struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metadata          `json:"metadata"`
	Data       map[string]string `json:"data"`
}

type metadata struct {
	Name            string            `json:"name"`
	Labels          map[string]string `json:"labels,omitempty"`
	OwnerReferences []owner           `json:"ownerReferences,omitempty"`
}

type owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid"`
}

// put applies the own ConfigMap with one more key. Server-side apply creates it if missing and is
// idempotent, so a request that failed half-way can be repeated.
func (c *Channel) put(ctx context.Context, key, value string) error {
	c.data[key] = value
	m := configMap{APIVersion: "v1", Kind: "ConfigMap", Data: c.data, Metadata: metadata{
		Name: c.Name(), Labels: map[string]string{"app.kubernetes.io/component": "probe", "ordergrid.dev/probe": c.cfg.Probe},
	}}
	if c.cfg.ProbeUID != "" {
		m.Metadata.OwnerReferences = []owner{{"ordergrid.dev/v1alpha1", "OrderProbe", c.cfg.Probe, c.cfg.ProbeUID}}
	}
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	path := c.path(c.Name()) + "?fieldManager=order-probe&force=true"
	for {
		err := c.do(ctx, http.MethodPatch, path, "application/apply-patch+yaml", body, nil)
		var status *statusError
		if err == nil || errors.As(err, &status) && status.code < 500 && status.code != http.StatusTooManyRequests {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (c *Channel) path(name string) string {
	return c.cfg.Server + "/api/v1/namespaces/" + url.PathEscape(c.cfg.Namespace) + "/configmaps/" + url.PathEscape(name)
}

// statusError is an answer of the API server other than success.
type statusError struct {
	method, path string
	code         int
	message      string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s %s: %d %s", e.method, e.path, e.code, e.message)
}

// maxAnswer bounds the size of an answer of the API server, in bytes.
const maxAnswer = 4 << 20

func (c *Channel) do(ctx context.Context, method, url, contentType string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "order-probe")
	// Kubernetes replaces the token while the pod runs: read it every time.
	if token, err := os.ReadFile(filepath.Join(c.cfg.AccountDir, "token")); err == nil {
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, req.URL.Path, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		var s struct {
			Message string `json:"message"`
		}
		_ = json.Unmarshal(b, &s) // a proxy may answer with another body
		return &statusError{method, req.URL.Path, resp.StatusCode, s.Message}
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("%s %s: %w", method, req.URL.Path, err)
	}
	return nil
}
