package local

import (
	"fmt"
	"slices"
	"strings"
)

// In a machine, the programs and the machine's own files are always here.
const (
	machineBin  = "/run/ordergrid/bin/"
	machineEtc  = "/run/ordergrid/etc/"
	machineLog  = "/run/ordergrid/log/"
	machineDisk = "/run/ordergrid/disk/"
)

// Service is one daemon the machine's first process keeps running.
type Service struct {
	Name string   `json:"name"`
	Args []string `json:"args"` // Args[0] is the program
	// After delays each start until a Unix socket accepts ("unix:/path") or a
	// URL, checked against the cluster's authority, answers 200.
	After string `json:"after,omitempty"`
}

// services lists a machine's daemons.
func (p *Plan) services(name string) ([]Service, error) {
	switch name {
	case switchName:
		return []Service{p.proxyService()}, nil
	case controlPlaneName:
		return p.controlPlaneServices(), nil
	}
	node, err := p.node(name)
	if err != nil {
		return nil, err
	}
	return []Service{
		{Name: "containerd", Args: []string{"containerd", "--config", machineEtc + "containerd.toml", "--log-level", "warn"}},
		{Name: "kubelet", After: "unix:/run/containerd/containerd.sock", Args: []string{
			machineBin + "kubelet",
			"--config=" + machineEtc + "kubelet.yaml",
			"--kubeconfig=" + machineEtc + "kubelet.kubeconfig",
			"--hostname-override=" + node.Name,
			"--node-ip=" + p.nodeAddr(node).String(),
			"--node-labels=" + joinLabels(node.Labels()),
			"--housekeeping-interval=30s",
			"--v=1",
		}},
		p.proxyService(),
	}, nil
}

func (p *Plan) proxyService() Service {
	return Service{
		Name: "kube-proxy", After: p.apiURL() + "/readyz",
		Args: []string{machineBin + "kube-proxy", "--config=" + machineEtc + "kube-proxy.yaml", "--v=1"},
	}
}

func (p *Plan) controlPlaneServices() []Service {
	ready := p.apiURL() + "/readyz"
	return []Service{
		{Name: "etcd", Args: []string{
			machineBin + "etcd", "--name=control-plane", "--data-dir=" + machineDisk + "etcd",
			"--listen-client-urls=http://127.0.0.1:2379", "--advertise-client-urls=http://127.0.0.1:2379",
			"--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380",
			"--initial-cluster=control-plane=http://127.0.0.1:2380",
			// One member, no peer to send heartbeats to: tick seldom, but not so
			// seldom that electing itself at the start takes seconds. The data
			// need not outlive the host, so there is no waiting for disks.
			"--heartbeat-interval=200", "--election-timeout=1000", "--unsafe-no-fsync",
			"--log-level=warn",
		}},
		{Name: "kube-apiserver", After: "http://127.0.0.1:2379/health", Args: p.apiserverArgs()},
		{Name: "kube-controller-manager", After: ready, Args: []string{
			machineBin + "kube-controller-manager",
			"--kubeconfig=" + machineEtc + "controller-manager.kubeconfig",
			"--bind-address=127.0.0.1",
			"--root-ca-file=" + machineEtc + "ca.crt",
			"--service-account-private-key-file=" + machineEtc + "service-account.key",
			"--cluster-signing-cert-file=" + machineEtc + "ca.crt",
			"--cluster-signing-key-file=" + machineEtc + "ca.key",
			"--use-service-account-credentials=true",
			"--leader-elect=false",
			// Its dozens of controllers start in one second instead of four.
			"--kube-api-qps=200", "--kube-api-burst=400",
			// With the kubelets' four seconds, a dead node is noticed in 20.
			"--node-monitor-grace-period=20s",
			"--profiling=false",
			"--v=1",
		}},
		{Name: "kube-scheduler", After: ready, Args: []string{
			machineBin + "kube-scheduler",
			"--kubeconfig=" + machineEtc + "scheduler.kubeconfig",
			"--bind-address=127.0.0.1",
			"--leader-elect=false",
			"--profiling=false",
			"--v=1",
		}},
	}
}

func (p *Plan) apiserverArgs() []string {
	return []string{
		machineBin + "kube-apiserver",
		"--advertise-address=" + p.controlPlaneAddr().String(),
		"--secure-port=6443",
		"--etcd-servers=http://127.0.0.1:2379",
		"--service-cluster-ip-range=" + p.serviceNetwork().String(),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--client-ca-file=" + machineEtc + "ca.crt",
		"--tls-cert-file=" + machineEtc + "apiserver.crt",
		"--tls-private-key-file=" + machineEtc + "apiserver.key",
		"--kubelet-certificate-authority=" + machineEtc + "ca.crt",
		"--kubelet-client-certificate=" + machineEtc + "kubelet-client.crt",
		"--kubelet-client-key=" + machineEtc + "kubelet-client.key",
		"--kubelet-preferred-address-types=InternalIP",
		"--requestheader-client-ca-file=" + machineEtc + "ca.crt",
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + machineEtc + "front-proxy.crt",
		"--proxy-client-key-file=" + machineEtc + "front-proxy.key",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + machineEtc + "service-account.key",
		"--service-account-signing-key-file=" + machineEtc + "service-account.key",
		"--audit-policy-file=" + machineEtc + "audit.yaml",
		"--audit-log-path=" + machineLog + "audit.log",
		// Ten seconds after a node is noticed to be dead its pods are evicted.
		"--default-not-ready-toleration-seconds=10",
		"--default-unreachable-toleration-seconds=10",
		"--profiling=false",
		"--v=1",
	}
}

func joinLabels(labels map[string]string) string {
	var all []string
	for key, value := range labels {
		all = append(all, fmt.Sprintf("%s=%s", key, value))
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}
