package manager

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
)

// executors makes the clients of executors, by name. A request and its token can cut a machine's power, so they are
// sent by https to a server that an authority vouches for; by plain http only where that was configured explicitly.
func executors(o Options) (map[string]*executor.Client, error) {
	tokens, err := filesOf("--drill-executor-token", o.DrillExecutorTokens)
	if err != nil {
		return nil, err
	}
	authorities, err := filesOf("--drill-executor-ca", o.DrillExecutorCAs)
	if err != nil {
		return nil, err
	}
	out := map[string]*executor.Client{}
	for _, e := range o.DrillExecutors {
		name, url, found := strings.Cut(e, "=")
		switch {
		case !found || name == "" || strings.ContainsAny(name, "/ "):
			return nil, fmt.Errorf("--drill-executor: %q is not NAME=URL", e)
		case out[name] != nil:
			return nil, fmt.Errorf("--drill-executor: %q is given twice; names are in the status of drills and must be unique", name)
		case tokens[name] == "":
			return nil, fmt.Errorf("--drill-executor: %s has no token; give --drill-executor-token=%s=FILE", name, name)
		}
		token, err := os.ReadFile(tokens[name])
		if err != nil {
			return nil, fmt.Errorf("--drill-executor-token: %s: %w", name, err)
		}
		transport, err := transportTo(name, url, authorities[name], slices.Contains(o.DrillExecutorInsecure, name))
		if err != nil {
			return nil, err
		}
		if out[name], err = executor.NewClient(url, strings.TrimSpace(string(token)), transport); err != nil {
			return nil, fmt.Errorf("--drill-executor: %s: %w", name, err)
		}
	}
	for _, about := range []struct {
		flag  string
		names []string
	}{{"--drill-executor-token", sortedKeys(tokens)}, {"--drill-executor-ca", sortedKeys(authorities)}, {"--drill-executor-insecure", o.DrillExecutorInsecure}} {
		for _, name := range about.names {
			if out[name] == nil {
				return nil, fmt.Errorf("%s: there is no executor %s; give --drill-executor=%s=URL", about.flag, name, name)
			}
		}
	}
	return out, nil
}

// filesOf reads NAME=FILE.
func filesOf(flag string, entries []string) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range entries {
		name, file, found := strings.Cut(e, "=")
		if !found || name == "" || file == "" {
			return nil, fmt.Errorf("%s: %q is not NAME=FILE", flag, e)
		}
		files[name] = file
	}
	return files, nil
}

// transportTo an executor trusts the authorities of a file only: the operator's image has none of its own.
func transportTo(name, url, authorities string, insecure bool) (*http.Transport, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil // the token is for the executor
	if scheme, _, _ := strings.Cut(strings.ToLower(url), "://"); scheme != "https" {
		if scheme == "http" && !insecure {
			return nil, fmt.Errorf("--drill-executor: %s: %s is plain http, which exposes the token to the network; give an https URL and --drill-executor-ca=%s=FILE, or set --drill-executor-insecure=%s", name, url, name, name)
		}
		return transport, nil // NewClient reports invalid ones
	}
	if authorities == "" {
		return nil, fmt.Errorf("--drill-executor: %s: no authority is configured for %s; give --drill-executor-ca=%s=FILE", name, url, name)
	}
	pem, err := os.ReadFile(authorities)
	if err != nil {
		return nil, fmt.Errorf("--drill-executor-ca: %s: %w", name, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--drill-executor-ca: %s: %s has no certificate in PEM form", name, authorities)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}
	return transport, nil
}
