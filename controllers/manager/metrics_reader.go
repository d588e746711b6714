package manager

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

// The API server is asked who shows a token (TokenReview), and whether he may get the page (SubjectAccessReview), as the
// metrics of Kubernetes' own components are guarded. controller-runtime's filter does the same by way of k8s.io/apiserver,
// which brings 24 modules more, gRPC, OpenTelemetry and CEL among them.

const (
	// reviewsPerSecond and reviewBurst are a budget of their own: one invented token after another costs the reconcilers
	// nothing of theirs.
	reviewsPerSecond, reviewBurst = 5, 10
	// reviewWithin bounds both questions together, for those that wait for their turn, too.
	reviewWithin = 5 * time.Second
	// letInFor and keptOutFor is how long an answer counts. Prometheus asks every 15 s with the same token.
	letInFor, keptOutFor = time.Minute, 10 * time.Second
	// verdictsKept is how many answers are kept; beyond that the oldest go.
	verdictsKept = 64
)

// readers lets get a page who may.
type readers struct {
	clients kubernetes.Interface
	page    http.Handler
	now     func() time.Time

	mu       sync.Mutex
	verdicts map[[sha256.Size]byte]verdict // by hash of token and path
}

type verdict struct {
	status int // of HTTP; 200: he may
	until  time.Time
}

// reviewed is the page for those whom the API server knows and lets get it.
func reviewed(cfg *rest.Config, page http.Handler) (http.Handler, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst, cfg.RateLimiter = reviewsPerSecond, reviewBurst, nil
	clients, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &readers{clients: clients, page: page, now: time.Now, verdicts: map[[sha256.Size]byte]verdict{}}, nil
}

// ServeHTTP implements http.Handler.
func (r *readers) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	token, found := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
	if !found || token == "" {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "show a token: Authorization: Bearer TOKEN", http.StatusUnauthorized)
		return
	}
	switch status := r.may(q.Context(), token, q.URL.Path); status {
	case http.StatusOK:
		r.page.ServeHTTP(w, q)
	case http.StatusUnauthorized:
		http.Error(w, "the API server does not know this token", status)
	case http.StatusForbidden:
		http.Error(w, "this account may not get "+q.URL.Path+"; bind it to a ClusterRole with nonResourceURLs [\"/metrics\"] and verbs [get]", status)
	default:
		http.Error(w, "the API server could not be asked", status)
	}
}

// may is the HTTP status for a token and a path: 200 if it is let in. What the API server could not be asked is not kept.
func (r *readers) may(ctx context.Context, token, path string) int {
	key, now := sha256.Sum256([]byte(token+"\n"+path)), r.now()
	r.mu.Lock()
	v, there := r.verdicts[key]
	r.mu.Unlock()
	if there && now.Before(v.until) {
		return v.status
	}
	ctx, cancel := context.WithTimeout(ctx, reviewWithin)
	defer cancel()
	status, err := r.review(ctx, token, path)
	if err != nil {
		ctrl.Log.WithName("metrics").Error(err, "who asks for metrics could not be found out; the operator needs the right to create tokenreviews and subjectaccessreviews")
		return http.StatusServiceUnavailable
	}
	r.keep(key, verdict{status, now.Add(map[bool]time.Duration{true: letInFor, false: keptOutFor}[status == http.StatusOK])})
	return status
}

// review asks the API server. No error contains the token.
func (r *readers) review(ctx context.Context, token, path string) (status int, err error) {
	who, err := r.clients.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	if !who.Status.Authenticated || who.Status.User.Username == "" {
		return http.StatusUnauthorized, nil
	}
	user, extra := who.Status.User, map[string]authorizationv1.ExtraValue{}
	for k, v := range user.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	access, err := r.clients.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, err
	case access.Status.Allowed && !access.Status.Denied:
		return http.StatusOK, nil
	}
	return http.StatusForbidden, nil
}

// keep remembers an answer. When there is no room, those that count no more go, and if none does, the one that ends first.
func (r *readers) keep(key [sha256.Size]byte, v verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, there := r.verdicts[key]; !there && len(r.verdicts) >= verdictsKept {
		var first [sha256.Size]byte
		for k, old := range r.verdicts {
			if r.verdicts[first].until.IsZero() || old.until.Before(r.verdicts[first].until) {
				first = k
			}
		}
		delete(r.verdicts, first)
	}
	r.verdicts[key] = v
}
