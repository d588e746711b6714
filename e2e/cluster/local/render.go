package local

import (
	"bytes"
	"embed"
	"encoding/base64"
	"fmt"
	"path"
	"text/template"

	"github.com/ordergrid/ordergrid/internal/pki"
)

//go:embed templates
var templateFiles embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").ParseFS(templateFiles, "templates/*"))

// render executes one embedded template.
func render(name string, data any) ([]byte, error) {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, path.Base(name), data); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// nodeSettings are the values the templates of one machine use.
type nodeSettings struct {
	Machine     string
	Address     string
	Pods        string
	PodNetwork  string
	DNS         string
	Cgroup      string
	PauseImage  string
	Snapshotter string
	CNIBin      string
}

// dnsSettings are the values of the cluster add-ons' template.
type dnsSettings struct {
	DNS         string
	DNSImage    string
	DNSReplicas int
}

// authorityName is the common name of the cluster's certificate authority.
const authorityName = "ordergrid local cluster"

// kubeconfig is a client configuration for one identity.
func kubeconfig(ca *pki.Authority, context, server string, id pki.Identity) ([]byte, error) {
	cert, key, err := ca.Issue(id)
	if err != nil {
		return nil, err
	}
	encode := base64.StdEncoding.EncodeToString
	return render("kubeconfig.yaml", map[string]string{
		"Context": context, "Server": server, "User": id.User,
		"CA": encode(ca.PEM), "Cert": encode(cert), "Key": encode(key),
	})
}
