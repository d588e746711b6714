//go:build e2e

package cluster

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/site"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// serverName is in the gateway's certificate.
const serverName = gateway + "-gateway." + namespace + ".svc"

// duplicate is how an order is refused that is in the grid.
const duplicate = "an order with this ClOrdID exists"

// password of BANK, and the folder with the certificates of the FIX port and of FUND.
var password, folder = rand.Text(), ""

// secrets makes the Secrets of the FIX port.
func secrets(ctx context.Context, s *site.Site) {
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

// judge wants an answer to each order: New, or a duplicate of one whose report was lost with a connection. Each has to be
// in the grid, and nothing else.
func judge(ctx context.Context, s *site.Site) {
	c := auditor(ctx, s)
	for _, d := range desks {
		orders := d.finish(ctx, s)
		d.stop()
		reports, refused := d.reports(s)
		fresh, repeated, lost := 0, 0, 0
		for n := 1; n <= orders; n++ {
			id := d.clOrdID(n)
			switch text := strings.Join(reports[id], ""); {
			case strings.Count(text, "0") > 1 || strings.Trim(text, "08") != "" || text == "":
				s.Errorf("the reports of %s are %q; wanted is New once, or Rejected as a duplicate", id, text)
			case strings.HasPrefix(text, "0"):
				fresh++
			default:
				repeated++
			}
			if o, err := c.GetByClOrdID(ctx, id); err != nil {
				lost++
				s.Errorf("%s was answered with %q, and is not in the grid: %v", id, reports[id], err)
			} else if !strings.Contains(string(o.FIX), "\x0111="+id+"\x01") {
				s.Errorf("%s is another order in the grid: %q", id, o.FIX)
			}
		}
		for _, text := range refused {
			if !strings.Contains(text, duplicate) {
				s.Errorf("%s was refused: %s", d.name, text)
			}
		}
		_, logons, _ := d.state()
		s.Logf("%s: %d orders over %d logons: %d reported New, %d found in the grid when sent again, %d lost", d.name, orders, logons, fresh, repeated, lost)
	}
	desks = nil
}

// auditor reads the grid from this machine, as a client with a certificate of the grid.
func auditor(ctx context.Context, s *site.Site) *client.Client {
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
