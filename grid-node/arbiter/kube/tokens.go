package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/ordergrid/ordergrid/grid-node/access"
)

// Tokens resolves tokens through the API server (TokenReview). It needs the right to
// create tokenreviews, which the cluster grants.
type Tokens struct {
	client   *rest.RESTClient
	audience string
}

var _ access.Reviewer = (*Tokens)(nil)

// The rate limit of reviews a node sends, whatever clients send it: per second, and the
// burst.
const (
	reviewsPerSecond = 20
	reviewBurst      = 50
)

// NewTokens returns a reviewer of tokens for one audience.
func NewTokens(cfg *rest.Config, audience string) (*Tokens, error) {
	if audience == "" {
		return nil, errors.New(`--token-audience: value "", allowed: the audience of tokens, for example ordergrid.dev`)
	}
	scheme := runtime.NewScheme()
	if err := authenticationv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c := rest.CopyConfig(cfg)
	gv := authenticationv1.SchemeGroupVersion
	c.APIPath, c.GroupVersion = "/apis", &gv
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.UserAgent = "grid-node"
	c.QPS, c.Burst = reviewsPerSecond, reviewBurst
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("token reviews: %w", err)
	}
	return &Tokens{client: client, audience: audience}, nil
}

// Review implements access.Reviewer. No error contains the token.
func (t *Tokens) Review(ctx context.Context, token string) (*access.Identity, error) {
	ask := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{t.audience}}}
	var answer authenticationv1.TokenReview
	err := t.client.Post().Resource("tokenreviews").VersionedParams(&metav1.CreateOptions{}, metav1.ParameterCodec).
		MaxRetries(0).Body(ask).Do(ctx).Into(&answer)
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return nil, fmt.Errorf("%w: grid nodes of this namespace may not create tokenreviews: name the namespace in clientTokens.namespaces of the operator's chart", access.ErrUnavailable)
	case err != nil:
		return nil, fmt.Errorf("%w: the API server did not answer: %s", access.ErrUnavailable, reason(err))
	}
	s := &answer.Status
	switch {
	case !s.Authenticated && s.Error != "":
		return nil, fmt.Errorf("%w: %.200s", access.ErrRefused, s.Error)
	case !s.Authenticated:
		return nil, fmt.Errorf("%w: the API server does not know it", access.ErrRefused)
	case !slices.Contains(s.Audiences, t.audience):
		return nil, fmt.Errorf("%w: it is for another audience, allowed: %q", access.ErrRefused, t.audience)
	case s.User.Username == "":
		return nil, fmt.Errorf("%w: the API server names no user", access.ErrRefused)
	}
	return &access.Identity{User: s.User.Username, Groups: s.User.Groups, Token: true}, nil
}

// reason returns why a request failed, without its content or target.
func reason(err error) string {
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		return string(status.Status().Reason)
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, context.Canceled):
		return "the node is stopping"
	}
	return "it cannot be reached"
}
