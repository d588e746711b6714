package local

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/ordergrid/ordergrid/internal/pki"
)

// Every machine finds its configuration below /run/ordergrid/etc, which is
// <state>/machines/<name>/etc on the host. Credentials are made once and kept,
// so that a machine keeps its identity; the rest is written each start.

// hostFacts are what the files depend on beside the plan.
type hostFacts struct {
	snapshotter string // containerd's, "overlayfs" or "native"
	cniBin      string // where the CNI plugins are installed
}

// writeMachineFiles writes everything below a machine's etc.
func (p *Plan) writeMachineFiles(name string, ca *pki.Authority, facts hostFacts) error {
	w := &fileWriter{dir: filepath.Join(p.machineDir(name), "etc"), plan: p, ca: ca}
	w.write("ca.crt", ca.PEM, nil)
	w.write("resolv.conf", []byte("# no resolver: the nodes have no way out\n"), nil)
	switch name {
	case switchName:
		w.proxy(name)
	case controlPlaneName:
		w.controlPlane()
	default:
		node, err := p.node(name)
		if err != nil {
			return err
		}
		w.proxy(name)
		w.node(node, facts)
	}
	return w.err
}

// fileWriter keeps the first error, so that the lists below read as lists.
type fileWriter struct {
	dir  string
	plan *Plan
	ca   *pki.Authority
	err  error
}

func (w *fileWriter) write(name string, content []byte, err error) {
	if w.err = errors.Join(w.err, err); w.err == nil {
		w.err = writeFile(filepath.Join(w.dir, name), content, 0o600)
	}
}

func (w *fileWriter) template(name string, data any) {
	content, err := render(name, data)
	w.write(name, content, err)
}

// missing reports whether a credential has yet to be made.
func (w *fileWriter) missing(name string) bool {
	_, err := os.Stat(filepath.Join(w.dir, name))
	return w.err == nil && errors.Is(err, os.ErrNotExist)
}

func (w *fileWriter) pair(name string, id pki.Identity) {
	if !w.missing(name + ".crt") {
		return
	}
	cert, key, err := w.ca.Issue(id)
	w.write(name+".key", key, err)
	w.write(name+".crt", cert, err)
}

func (w *fileWriter) kubeconfig(name string, id pki.Identity) {
	if !w.missing(name + ".kubeconfig") {
		return
	}
	content, err := kubeconfig(w.ca, "ordergrid-local", w.plan.apiURL(), id)
	w.write(name+".kubeconfig", content, err)
}

func (w *fileWriter) controlPlane() {
	p := w.plan
	w.pair("apiserver", pki.Identity{
		User:  "kube-apiserver",
		Names: []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost"},
		Addrs: []netip.Addr{p.controlPlaneAddr(), p.apiServiceAddr(), netip.AddrFrom4([4]byte{127, 0, 0, 1})},
	})
	w.pair("kubelet-client", pki.Identity{User: "kube-apiserver", Groups: []string{"system:masters"}})
	w.pair("front-proxy", pki.Identity{User: "front-proxy-client"})
	w.kubeconfig("controller-manager", pki.Identity{User: "system:kube-controller-manager"})
	w.kubeconfig("scheduler", pki.Identity{User: "system:kube-scheduler"})
	w.template("audit.yaml", nil)
	if w.missing("ca.key") {
		key, err := pki.EncodeKey(w.ca.Key) // the controller manager signs requests with it
		w.write("ca.key", key, err)
	}
	if w.missing("service-account.key") {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			w.err = errors.Join(w.err, err)
			return
		}
		keyPEM, err := pki.EncodeKey(key)
		w.write("service-account.key", keyPEM, err)
	}
}

func (w *fileWriter) proxy(machine string) {
	w.kubeconfig("proxy", pki.Identity{User: "system:kube-proxy"})
	// A kube-proxy waits half a minute for the Node object it is named after.
	// The switch has none; it borrows a node's name, which matters only to
	// services with a Local traffic policy.
	node := machine
	if machine == switchName {
		node = w.plan.Nodes[0].Name
	}
	w.template("kube-proxy.yaml", nodeSettings{
		Machine: node, Address: w.plan.machineAddr(machine).String(), PodNetwork: w.plan.podNetwork().String(),
	})
}

func (w *fileWriter) node(n Node, facts hostFacts) {
	p := w.plan
	w.pair("kubelet", pki.Identity{User: "system:node:" + n.Name, Names: []string{n.Name}, Addrs: []netip.Addr{p.nodeAddr(n)}})
	w.kubeconfig("kubelet", pki.Identity{User: "system:node:" + n.Name, Groups: []string{"system:nodes"}})
	settings := nodeSettings{
		Machine: n.Name, Pods: p.nodePods(n).String(), DNS: p.dnsAddr().String(), Cgroup: p.machineCgroup(n.Name),
		PauseImage: p.image("pause"), Snapshotter: facts.snapshotter, CNIBin: facts.cniBin,
	}
	w.template("containerd.toml", settings)
	w.template("kubelet.yaml", settings)
	content, err := render("cni.conflist", settings)
	w.write(filepath.Join("cni", "10-pods.conflist"), content, err)
}

// image names one of the cluster's own images. The tag changes with the
// binaries, so that another build is never taken for the loaded one.
func (p *Plan) image(name string) string {
	return "ordergrid.dev/" + name + ":" + filepath.Base(p.Bin)
}
