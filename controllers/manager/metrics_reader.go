package manager

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ordergrid/ordergrid/internal/webguard"
)

// Tokens are reviewed by the API server (TokenReview, then SubjectAccessReview), as for the metrics of Kubernetes' own
// components. controller-runtime's filter does the same by way of k8s.io/apiserver, which brings 24 modules more, gRPC,
// OpenTelemetry and CEL among them.

const (
	// reviewsPerSecond and reviewBurst bound the reviews of unknown tokens, in a budget of their own: a flood of
	// invalid tokens does not slow the reconcilers. againPerSecond and againBurst are for tokens that were accepted the
	// last time, which therefore never queue behind invalid ones.
	reviewsPerSecond, reviewBurst = 5, 10
	againPerSecond, againBurst    = 2, 10
	// reviewsOfAddress is how many new tokens one address may have reviewed at a time, of the 25 that are served within
	// reviewWithin: a new token of Prometheus is reviewed in spite of a flood from another host.
	reviewsOfAddress = 6
	// reviewWithin bounds both requests together, including the wait for the budget.
	reviewWithin = 5 * time.Second
	// letInFor and keptOutFor are how long an answer is cached. Prometheus asks every 15 s with the same token.
	letInFor, keptOutFor = time.Minute, 10 * time.Second
	// refusalsKept and readersKept are how many answers are cached; beyond that the oldest are dropped. They are
	// separate: refusals never evict a reader.
	refusalsKept, readersKept = 64, 32
)

// readers serves a page to authorized accounts.
type readers struct {
	first, again kubernetes.Interface // the API server, in the budgets of new tokens and of readers
	page         http.Handler
	now          func() time.Time

	mu       sync.Mutex
	refusals map[tokenKey]verdict
	known    map[tokenKey]verdict // accounts accepted the last time, also when that answer has expired
	asking   map[netip.Addr]int   // reviews of new tokens under way, by address
}

// tokenKey is the hash of a token and a path.
type tokenKey [sha256.Size]byte

type verdict struct {
	status int // HTTP status; 200: allowed
	until  time.Time
}

// reviewed is the page for accounts that the API server authorizes.
func reviewed(cfg *rest.Config, page http.Handler) (http.Handler, error) {
	return newReaders(cfg, page, flowcontrol.NewTokenBucketRateLimiter(reviewsPerSecond, reviewBurst), flowcontrol.NewTokenBucketRateLimiter(againPerSecond, againBurst))
}

func newReaders(cfg *rest.Config, page http.Handler, first, again flowcontrol.RateLimiter) (*readers, error) {
	r := &readers{page: page, now: time.Now, refusals: map[tokenKey]verdict{}, known: map[tokenKey]verdict{}, asking: map[netip.Addr]int{}}
	cfg = rest.CopyConfig(cfg)
	cfg.RateLimiter = first
	var err error
	if r.first, err = kubernetes.NewForConfig(cfg); err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.RateLimiter = again
	r.again, err = kubernetes.NewForConfig(cfg)
	return r, err
}

// ServeHTTP implements http.Handler.
func (r *readers) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	token, found := strings.CutPrefix(q.Header.Get("Authorization"), "Bearer ")
	if !found || token == "" {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "give a token: Authorization: Bearer TOKEN", http.StatusUnauthorized)
		return
	}
	switch status := r.may(q.Context(), token, q.URL.Path, webguard.Client(q.RemoteAddr)); status {
	case http.StatusOK:
		r.page.ServeHTTP(w, q)
	case http.StatusUnauthorized:
		http.Error(w, "the API server does not know this token", status)
	case http.StatusForbidden:
		http.Error(w, "this account may not get "+q.URL.Path+"; bind it to a ClusterRole with nonResourceURLs [\"/metrics\"] and verbs [get]", status)
	case http.StatusTooManyRequests:
		http.Error(w, fmt.Sprintf("%d tokens of this address are being reviewed already; ask again", reviewsOfAddress), status)
	default:
		http.Error(w, "the API server could not be asked", status)
	}
}

// may returns the HTTP status for a token and a path: 200 if it is accepted. Failures to reach the API server are not
// cached.
func (r *readers) may(ctx context.Context, token, path string, from netip.Addr) int {
	key, now := tokenKey(sha256.Sum256([]byte(token+"\n"+path))), r.now()
	r.mu.Lock()
	v, known := r.known[key]
	if !known {
		v = r.refusals[key]
	}
	counts := now.Before(v.until)
	busy := !counts && !known && r.asking[from] >= reviewsOfAddress
	if !counts && !known && !busy {
		r.asking[from]++
		defer r.asked(from)
	}
	r.mu.Unlock()
	switch {
	case counts:
		return v.status
	case busy:
		return http.StatusTooManyRequests
	}
	api := r.first
	if known {
		api = r.again
	}
	ctx, cancel := context.WithTimeout(ctx, reviewWithin)
	defer cancel()
	status, err := review(ctx, api, token, path)
	if err != nil {
		ctrl.Log.WithName("metrics").Error(err, "a reader of metrics could not be authenticated; the operator needs permission to create tokenreviews and subjectaccessreviews")
		return http.StatusServiceUnavailable
	}
	r.keep(key, status, now)
	return status
}

// asked ends the review of a new token.
func (r *readers) asked(from netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asking[from]--; r.asking[from] == 0 {
		delete(r.asking, from)
	}
}

// review asks the API server. No error contains the token.
func review(ctx context.Context, api kubernetes.Interface, token, path string) (status int, err error) {
	who, err := api.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
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
	access, err := api.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
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

// keep caches an answer.
func (r *readers) keep(key tokenKey, status int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if status == http.StatusOK {
		delete(r.refusals, key)
		put(r.known, readersKept, key, verdict{status, now.Add(letInFor)})
		return
	}
	delete(r.known, key)
	put(r.refusals, refusalsKept, key, verdict{status, now.Add(keptOutFor)})
}

// put adds an answer. When there is no room, the one that expires first is dropped.
func put(kept map[tokenKey]verdict, most int, key tokenKey, v verdict) {
	if _, there := kept[key]; !there && len(kept) >= most {
		var first tokenKey
		for k, old := range kept {
			if kept[first].until.IsZero() || old.until.Before(kept[first].until) {
				first = k
			}
		}
		delete(kept, first)
	}
	kept[key] = v
}
