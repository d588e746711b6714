package local

import (
	"bytes"
	"embed"
	"encoding/base64"
	"fmt"
	"path"
	"text/template"
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

// kubeconfig is a client configuration for one identity.
func (a *authority) kubeconfig(context, server string, id identity) ([]byte, error) {
	cert, key, err := a.issue(id)
	if err != nil {
		return nil, err
	}
	encode := base64.StdEncoding.EncodeToString
	return render("kubeconfig.yaml", map[string]string{
		"Context": context, "Server": server, "User": id.user,
		"CA": encode(a.certPEM), "Cert": encode(cert), "Key": encode(key),
	})
}
