//go:build e2e

package cluster

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/fixture"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// serverName is in the gateway's certificate.
const serverName = gateway + "-gateway." + namespace + ".svc"

// password of BANK, and the folder with the certificates of the FIX port and of FUND.
var password, folder = rand.Text(), ""

// secrets makes the Secrets of the FIX port.
func secrets(ctx context.Context, s *fixture.Fixture) {
	s.Helper()
	var err error
	if folder, err = os.MkdirTemp("", "ordergrid-fix-"); err != nil {
		s.Fatal(err)
	}
	authority, err := pki.Load(folder, "fix")
	if err != nil {
		s.Fatal(err)
	}
	cert, key, err := authority.Issue(pki.Identity{User: "street", Names: []string{serverName}})
	if err != nil {
		s.Fatal(err)
	}
	if _, err := authority.Save(folder, "fund", pki.Identity{User: "fund", Names: []string{"fund.example"}, ClientOnly: true}); err != nil {
		s.Fatal(err)
	}
	for name, data := range map[string]map[string][]byte{
		"street-fix":       {"tls.crt": cert, "tls.key": key, "ca.crt": authority.PEM},
		"street-passwords": {"bank": []byte(password + "\n")},
	} {
		manifest, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]string{"name": name, "namespace": namespace}, "data": data})
		if err != nil {
			s.Fatal(err)
		}
		s.Must(s.Kube.Apply(ctx, manifest))
	}
}

// judge wants one report of each order, New, each number of a report once, and each order in the grid once.
func judge(ctx context.Context, s *fixture.Fixture) {
	c := auditor(ctx, s)
	for _, d := range desks {
		if err := d.Enough(); err != nil {
			s.Fatal(err)
		}
	}
	for _, d := range desks {
		s.Eventually(ctx, "an answer to each order of "+d.Name, fixture.Patience, func(context.Context) error {
			if now := d.State(); now.Answered < now.Orders {
				return fmt.Errorf("%s", now.Trouble)
			}
			return nil
		})
	}
	inGrid := map[string]int{}
	for _, part := range c.Table() {
		if _, err := c.ReadLog(ctx, part.ID, "", 1, func(e client.LogEntry) error {
			if e.Kind == order.KindOrder {
				inGrid[string(order.ClOrdID(e.Bytes))]++
			}
			return nil
		}); err != nil {
			s.Fatal(err)
		}
	}
	for _, d := range desks {
		now := d.State()
		wrong := d.Judge(inGrid)
		s.Logf("%s (%s): %d orders over %d logons, %d of them wrong", d.Name, d.Engine, now.Orders, now.Logons, len(wrong))
		for _, text := range wrong {
			s.Error(text)
		}
		d.Stop()
	}
	desks = nil
}

// auditor reads the grid from this machine, as a client with a certificate of the grid.
func auditor(ctx context.Context, s *fixture.Fixture) *client.Client {
	s.Helper()
	files := client.PEMFiles{Name: grid + "-client." + namespace + ".svc"}
	for key, to := range map[string]*string{"tls.crt": &files.Cert, "tls.key": &files.Key, "ca.crt": &files.CA} {
		text := s.Must(s.Kube.Run(ctx, "get", "secret", grid+".tls-client-auditor", "-n", namespace, "-o", `jsonpath={.data.`+strings.ReplaceAll(key, ".", `\.`)+`}`))
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			s.Fatal(err)
		}
		*to = filepath.Join(folder, "auditor-"+key)
		if err := os.WriteFile(*to, raw, 0o600); err != nil {
			s.Fatal(err)
		}
	}
	ip := s.Must(s.Kube.Run(ctx, "get", "service", grid+"-client", "-n", namespace, "-o", "jsonpath={.spec.clusterIP}"))
	c, err := client.Dial(ctx, client.Config{Endpoints: []string{ip + ":7400"}, Grid: grid, DialTimeout: time.Minute, RequestTimeout: time.Minute, TLS: client.TLSFiles(files)})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = c.Close() })
	return c
}
