//go:build e2e

package operations

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	drill "github.com/ordergrid/ordergrid/probe/drill/api"
)

// securely are the changes that give grid and recorder TLS by the operator's own authority. Orders of ten minutes have to
// fit: nothing is freed.
var securely = struct{ grid, recorder []string }{
	grid: []string{"  security: {insecure: Accept}\n", "", "  memory: 256Mi\n", `  memory: 1Gi
  security:
    tls:
      duration: 24h
      renewBefore: 8h
      authority: {duration: 48h, overlap: 3m}
`},
	recorder: []string{
		"--dir, /history,", "--dir, /history, --tls-cert, /tls/tls.crt, --tls-key, /tls/tls.key, --tls-ca, /tls/ca.crt, --tls-name, trades-client.ordergrid-operations.svc,",
		"volumeMounts: [", "volumeMounts: [{name: tls, mountPath: /tls, readOnly: true}, ",
		"  volumes: [", "  volumes: [{name: tls, secret: {secretName: trades.tls-tools, defaultMode: 288}}, ",
	},
}

// rotateCertificates has every certificate reissued, then the authority replaced, while orders flow over TLS. No pod
// is replaced or restarted, and connections that stand are not touched.
func rotateCertificates(t *testing.T) {
	ctx, f := on(t)
	f.grow(ctx, securely.grid...)
	f.conditions(ctx, patience, api.ConditionTLSReady+"=True")
	r := f.record(ctx, "certificate-rotation", 2, securely.recorder...)
	pods := f.pods(ctx)
	r.step(ctx, drill.Step{Type: "CertificateRotation", What: "every certificate is issued anew"}, func() string {
		before := f.presented(ctx)
		f.annotate(ctx, api.AnnotationRenewCertificates)
		began := time.Now()
		f.eventually(ctx, "all nodes present another certificate", patience, func(ctx context.Context) error { return f.others(ctx, before, 1) })
		return fmt.Sprintf("both nodes present other certificates; the last after %s", time.Since(began).Round(time.Second))
	})
	r.step(ctx, drill.Step{Type: "AuthorityRotation", What: "the authority is replaced by another"}, func() string {
		before := f.presented(ctx)
		f.annotate(ctx, api.AnnotationRenewAuthority)
		f.eventually(ctx, "all nodes trust the next authority beside the present one", patience, func(ctx context.Context) error {
			for pod, now := range f.presented(ctx) {
				if len(now.Authorities) != 2 {
					return fmt.Errorf("%s trusts %d authorities", pod, len(now.Authorities))
				}
			}
			return nil
		})
		f.eventually(ctx, "all nodes present a certificate of the next authority", 2*patience, func(ctx context.Context) error { return f.others(ctx, before, 2) })
		f.eventually(ctx, "only the next authority is trusted", 2*patience, func(ctx context.Context) error { return f.others(ctx, before, 1) })
		for pod, now := range f.presented(ctx) {
			for _, authority := range before[pod].Authorities {
				if now.Authorities[0] == authority {
					t.Errorf("%s still trusts the authority of before", pod)
				}
			}
		}
		return "no node trusts the authority of before"
	})
	if replaced := f.replaced(ctx, pods); len(replaced) > 0 {
		t.Errorf("pods %v were replaced", replaced)
	}
	for name, pod := range f.pods(ctx) {
		for _, c := range pod.Status.ContainerStatuses {
			if c.RestartCount > 0 {
				t.Errorf("%s was restarted", name)
			}
		}
	}
	out := f.must(f.kube.Run(ctx, "get", "events", "-n", namespace, "--sort-by=.lastTimestamp"))
	for line := range strings.Lines(out) {
		if strings.Contains(line, "Certificate") || strings.Contains(line, "Authority") {
			t.Log(strings.TrimSpace(line))
		}
	}
	r.finish(ctx)
}

// annotate asks for something by an annotation of the grid.
func (f *field) annotate(ctx context.Context, name string) {
	f.Helper()
	value := name + "=" + strconv.FormatInt(time.Now().Unix(), 10)
	f.Logf("$ kubectl annotate ordergrid %s %s --overwrite", grid, value)
	f.must(f.kube.Run(ctx, "annotate", "ordergrid", grid, "-n", namespace, value, "--overwrite"))
}

// presented is what new connections find at each pod.
func (f *field) presented(ctx context.Context) map[string]*nodestatus.TLS {
	f.Helper()
	out := map[string]*nodestatus.TLS{}
	for name, pod := range f.pods(ctx) {
		node, err := nodestatus.Get(ctx, nodestatus.NewClient(5*time.Second, nil), net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(api.HTTPPort)))
		switch {
		case err != nil:
			f.Fatal(err)
		case node.TLS == nil:
			f.Fatalf("%s does not speak TLS", name)
		}
		out[name] = node.TLS
	}
	return out
}

// others: every node presents another certificate than before and trusts so many authorities.
func (f *field) others(ctx context.Context, before map[string]*nodestatus.TLS, authorities int) error {
	for pod, now := range f.presented(ctx) {
		if was := before[pod]; was != nil && now.Serial == was.Serial {
			return fmt.Errorf("%s presents certificate %s still", pod, now.Serial)
		}
		if len(now.Authorities) != authorities {
			return fmt.Errorf("%s trusts %d authorities", pod, len(now.Authorities))
		}
	}
	return nil
}
