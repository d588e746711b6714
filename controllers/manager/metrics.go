package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ordergrid/ordergrid/internal/webguard"
)

// metricsServer serves the metrics of this process, with the limits of all HTTP servers of OrderGrid.
// controller-runtime's own server has neither a write timeout nor a limit of connections.
type metricsServer struct {
	listener net.Listener
	server   *http.Server
	watcher  *certwatcher.CertWatcher // nil without certificates in files
}

// newMetricsServer listens. It returns nil if metrics are switched off.
func newMetricsServer(ctx context.Context, cfg *rest.Config, o Options) (*metricsServer, error) {
	if o.MetricsAddress == "0" {
		return nil, nil
	}
	var page http.Handler = webguard.Page(promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}),
		func(r *http.Request) string { return string(expfmt.Negotiate(r.Header)) })
	m := &metricsServer{}
	var secure *tls.Config
	if !o.MetricsInsecure {
		var err error
		if page, err = reviewed(cfg, page); err != nil {
			return nil, err
		}
		if secure, err = m.identity(o.MetricsCertDir); err != nil {
			return nil, err
		}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", page)
	listener, err := webguard.Listen(ctx, o.MetricsAddress, webguard.Limits{})
	if err != nil {
		return nil, fmt.Errorf("--metrics-bind-address: %w", err)
	}
	m.listener, m.server = listener, webguard.Server(mux, webguard.Limits{}, nil)
	if secure != nil {
		m.listener = tls.NewListener(listener, secure)
	}
	return m, nil
}

// identity is the certificate of a directory, read anew when it changes, or a self-signed one.
func (m *metricsServer) identity(dir string) (*tls.Config, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}
	if dir == "" {
		cert, key, err := certutil.GenerateSelfSignedCertKeyWithFixtures("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil, "")
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(cert, key)
		secure.Certificates = []tls.Certificate{pair}
		return secure, err
	}
	var err error
	if m.watcher, err = certwatcher.New(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")); err != nil {
		return nil, fmt.Errorf("--metrics-cert-dir: %w", err)
	}
	secure.GetCertificate = m.watcher.GetCertificate
	return secure, nil
}

// NeedLeaderElection: standby operators serve metrics, too.
func (m *metricsServer) NeedLeaderElection() bool { return false }

// Start serves until ctx ends.
func (m *metricsServer) Start(ctx context.Context) error {
	if m.watcher != nil {
		go func() {
			if err := m.watcher.Start(ctx); err != nil {
				ctrl.Log.Error(err, "the certificate of the metrics is not reloaded")
			}
		}()
	}
	stop := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = m.server.Shutdown(ending)
		_ = m.server.Close()
	})
	defer stop()
	if err := m.server.Serve(m.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
