package failoverdrill

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509/pkix"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/certificates"
	"github.com/ordergrid/ordergrid/controllers/objects"
	"github.com/ordergrid/ordergrid/internal/pki"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

// MetricsSecret names the Secret in the operator's namespace with which Prometheus reads the metrics of recorders.
const MetricsSecret = "ordergrid-drill-metrics"

// always is the validity of drill certificates: as long as the operator's key. A drill shifts clocks.
var always = pki.Period{From: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), To: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)}

// authority signs for recorders, and for readers of their metrics. It is derived from the operator's key, as tokens
// are.
func authority(key []byte) (*pki.Authority, error) {
	for n := byte(0); ; n++ {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte{'a', 'u', 't', 'h', 'o', 'r', 'i', 't', 'y', '/', n})
		// One number in four billion is outside the curve's range.
		if signing, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), mac.Sum(nil)); err == nil {
			return pki.Of(signing, pkix.Name{CommonName: KeySecret}, always)
		}
	}
}

// identity is what a recorder serves with.
func identity(d *api.FailoverDrill, key []byte) (map[string][]byte, error) {
	return issue(key, pki.Identity{User: recorder.ServerName, Names: []string{recorder.ServerName, recorder.ServerNameOf(string(d.UID))}, Valid: always})
}

func issue(key []byte, id pki.Identity) (map[string][]byte, error) {
	a, err := authority(key)
	if err != nil {
		return nil, err
	}
	cert, private, err := a.Issue(id)
	return map[string][]byte{certificates.KeyCert: cert, certificates.KeyKey: private, certificates.KeyCA: a.PEM}, err
}

// trusting is for a client of a drill's recorder.
func trusting(d *api.FailoverDrill, key []byte) (*tls.Config, error) {
	a, err := authority(key)
	if err != nil {
		return nil, err
	}
	return recorder.Trusting(a.PEM, string(d.UID))
}

// Start keeps the Secret with which Prometheus reads the metrics of recorders, for a PodMonitor that exists before the
// first drill. It retries until it succeeds, and returns.
func (k StoredKey) Start(ctx context.Context) error {
	for {
		err := k.keepMetricsSecret(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		ctrl.Log.WithName("drills").Error(err, "the Secret by which Prometheus reads the metrics of recorders could not be written; retried in 10 s")
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Second):
		}
	}
}

// NeedLeaderElection: one of several operators keeps it.
func (k StoredKey) NeedLeaderElection() bool { return true }

// keepMetricsSecret writes it where it is missing, or of another key.
func (k StoredKey) keepMetricsSecret(ctx context.Context) error {
	key, err := k.Key(ctx)
	if err != nil {
		return err
	}
	a, err := authority(key)
	if err != nil {
		return err
	}
	name := types.NamespacedName{Namespace: k.Namespace, Name: MetricsSecret}
	there := &corev1.Secret{}
	err = k.Live.Get(ctx, name, there)
	if err == nil {
		if cert, _, err := pki.ParsePair(there.Data[certificates.KeyCert], there.Data[certificates.KeyKey]); err == nil && cert.CheckSignatureFrom(a.Cert) == nil {
			return nil
		}
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read Secret %s: %w", name, err)
	}
	data, err := issue(key, pki.Identity{User: recorder.MetricsReader, ClientOnly: true, Valid: always})
	if err != nil {
		return err
	}
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: MetricsSecret, Labels: objects.Labels(objects.Drill, MetricsSecret)},
		Data:       data,
	}
	if there.Name == "" {
		err = k.Client.Create(ctx, s)
	} else {
		err = k.Client.Patch(ctx, s, client.MergeFrom(&corev1.Secret{ObjectMeta: s.ObjectMeta}))
	}
	if err != nil {
		return fmt.Errorf("write Secret %s: %w", name, err)
	}
	return nil
}

// links caches the clients of recorders, so that a recorder computes one handshake, not one per reconcile.
type links struct {
	mu sync.Mutex
	of map[types.UID]link
}

type link struct {
	url, token string
	client     *recorder.Client
}

// get returns the client of a drill's recorder at a URL.
func (l *links) get(d *api.FailoverDrill, url string, key []byte) (*recorder.Client, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := token(key, d)
	if known, there := l.of[d.UID]; there && known.url == url && known.token == t {
		return known.client, nil
	}
	secure, err := trusting(d, key)
	if err != nil {
		return nil, err
	}
	if l.of == nil {
		l.of = map[types.UID]link{}
	}
	c := recorder.NewClient(url, t, secure)
	l.of[d.UID] = link{url, t, c}
	return c, nil
}

func (l *links) forget(id types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, id)
}
