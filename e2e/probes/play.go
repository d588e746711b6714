// Package probes plays OrderProbes on a cluster.
package probes

import (
	"context"
	"errors"
	"fmt"
	"time"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/fixture"
)

// Play makes an OrderProbe of this spec, waits until it has ended, and prints its verdict. A failed one fails the test, as
// does a wrong order; that the machine disturbed it is no failure.
func Play(ctx context.Context, s *fixture.Fixture, name, spec string, limit time.Duration) *api.OrderProbe {
	s.Helper()
	begin, p := time.Now(), &api.OrderProbe{}
	s.Must(s.Kube.Apply(ctx, fmt.Appendf(nil, `{"apiVersion":"ordergrid.dev/v1alpha1","kind":"OrderProbe","metadata":{"name":%q,"namespace":%q},"spec":{%s}}`, name, s.Namespace, spec)))
	s.Eventually(ctx, "OrderProbe "+name+" to end", limit, func(ctx context.Context) error {
		if err := s.Kube.Get(ctx, p, "orderprobe", name, "-n", s.Namespace); err != nil {
			return err
		}
		state := "no condition"
		for _, c := range p.Status.Conditions {
			switch {
			case c.Status != "True":
			case c.Type == api.ConditionFailed:
				s.Fatalf("failed after %s: %s: %s", time.Since(begin).Round(time.Second), c.Reason, c.Message)
			case c.Type == api.ConditionComplete:
				return nil
			default:
				state = c.Reason + ": " + c.Message
			}
		}
		return errors.New(state)
	})
	s.Logf("%s: %s after %s: %s", name, p.Status.Verdict, time.Since(begin).Round(time.Second), p.Status.VerdictReason)
	if p.Status.Verdict != api.VerdictValid && p.Status.Verdict != api.VerdictInvalid {
		s.Errorf("verdict %q: an order was lost, duplicated or miscounted, or there was a gap", p.Status.Verdict)
	}
	return p
}
