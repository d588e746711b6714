//go:build e2e

package operations

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/client"
)

// tlsOnAndOff turns TLS on for a grid that serves, in the stages of docs/tls.md, and lets clients without it in again. Orders
// flow all the time: of a client without TLS as long as it may come, and of one with it from the time on that it may.
func tlsOnAndOff(t *testing.T) {
	ctx, f := on(t)
	f.grow(ctx, "  memory: 256Mi\n", "  memory: 1Gi\n")
	pods := f.pods(ctx)
	plain := f.spread(ctx, 200, nil)
	plain.more(t, 500)

	f.patch(ctx, `{"security":{"insecure":"Accept","tls":{"clients":["oms"]}}}`)
	f.transition(ctx, string(api.TLSTransitionBoth))
	f.updated(ctx, patience)
	plain.more(t, 500)
	if left := len(pods) - len(f.replaced(ctx, pods)); left != 0 {
		t.Errorf("%d pods are those of before TLS", left)
	}
	files := f.clientFiles(ctx, "oms")
	secured := f.spread(ctx, 200, files)
	secured.more(t, 500)
	f.eventually(ctx, "Secure names the client without TLS", patience, func(ctx context.Context) error {
		g, err := f.state(ctx)
		if err != nil {
			return err
		}
		if c := meta.FindStatusCondition(g.Status.Conditions, api.ConditionSecure); c == nil || !strings.Contains(c.Message, " without TLS") {
			return fmt.Errorf("%s", told(c))
		}
		return nil
	})

	plain.end()
	plain.c.Close() //nolint:errcheck // it never fails
	f.patch(ctx, `{"security":{"insecure":null,"networkPolicy":{"type":"None"}}}`)
	f.conditions(ctx, patience, api.ConditionSecure+"=True", api.ConditionRedundant+"=True", api.ConditionProgressing+"=False")
	f.transition(ctx, "")
	secured.more(t, 500)
	if c, err := f.dial(ctx, nil); !errors.Is(err, client.ErrTLS) {
		t.Errorf("a client without TLS is answered %v (%v), want that it is refused", c, err)
	}

	f.patch(ctx, `{"security":{"insecure":"Accept"}}`)
	f.transition(ctx, string(api.TLSTransitionBoth))
	f.updated(ctx, patience)
	late := f.spread(ctx, 200, nil)
	late.more(t, 500)
	secured.more(t, 500)
	late.judgeBy(ctx, t, secured.c)
	plain.judgeBy(ctx, t, secured.c)
	secured.judge(ctx, t)
}

// transition waits until TLS is as far as that.
func (f *field) transition(ctx context.Context, wanted string) {
	f.Helper()
	f.eventually(ctx, fmt.Sprintf("status.tls.transition %q", wanted), 2*patience, func(ctx context.Context) error {
		g, err := f.state(ctx)
		switch {
		case err != nil:
			return err
		case g.Status.TLS == nil:
			return errors.New("status.tls is not there yet")
		case string(g.Status.TLS.Transition) != wanted:
			return fmt.Errorf("it is %q; %s", g.Status.TLS.Transition, told(meta.FindStatusCondition(g.Status.Conditions, api.ConditionSecure)))
		}
		return nil
	})
}

// clientFiles are the certificate that the operator keeps for a client, as a pod of it would mount it.
func (f *field) clientFiles(ctx context.Context, name string) client.TLS {
	f.Helper()
	dir := f.TempDir()
	for _, file := range []string{"tls.crt", "tls.key", "ca.crt"} {
		text := f.must(f.kube.Run(ctx, "get", "secret", api.TLSClientSecret(grid, name), "-n", namespace, "-o",
			fmt.Sprintf(`go-template={{index .data %q | base64decode}}`, file)))
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	return client.TLSFiles(client.PEMFiles{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), CA: filepath.Join(dir, "ca.crt"),
		Name: grid + "-client." + namespace + ".svc"})
}
