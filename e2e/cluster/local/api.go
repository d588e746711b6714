package local

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/internal/pki"
)

// readyTimeout bounds each wait of up. On two busy processors a cluster takes
// seconds; only something broken takes minutes.
const readyTimeout = 3 * time.Minute

// apiClient reads from the API server as administrator. It knows the few
// fields it needs, which keeps client-go and its minutes of compiling out.
type apiClient struct {
	base string
	http *http.Client
}

func newAPIClient(plan *Plan) (*apiClient, error) {
	ca, err := pki.Load(plan.pkiDir(), authorityName)
	if err != nil {
		return nil, err
	}
	certPEM, keyPEM, err := ca.Issue(pki.Identity{User: "admin", Groups: []string{"system:masters"}})
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.Cert)
	config := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	return &apiClient{base: plan.apiURL(), http: &http.Client{
		Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: config},
	}}, nil
}

func (a *apiClient) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path, nil)
	if err != nil {
		return err
	}
	response, err := a.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s: %.300s", path, response.Status, body)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body, into)
}

// await repeats check until it returns nil.
func await(ctx context.Context, check func() error) error {
	deadline := time.Now().Add(readyTimeout)
	for {
		err := check()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return errors.Join(ctx.Err(), err)
		}
		time.Sleep(150 * time.Millisecond)
	}
}

func (a *apiClient) waitReady(ctx context.Context) error {
	return await(ctx, func() error { return a.get(ctx, "/readyz", nil) })
}

// nodeState is the API server's state of a node.
type nodeState struct {
	Ready    bool
	Reason   string
	Reported time.Time // when the kubelet last reported it
}

func (a *apiClient) nodes(ctx context.Context) (map[string]nodeState, error) {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Status   struct {
				Conditions []struct {
					Type, Status, Message string
					LastHeartbeatTime     time.Time
				}
			}
		}
	}
	if err := a.get(ctx, "/api/v1/nodes", &list); err != nil {
		return nil, err
	}
	states := map[string]nodeState{}
	for _, item := range list.Items {
		state := nodeState{Reason: "no Ready condition yet"}
		for _, condition := range item.Status.Conditions {
			if condition.Type == "Ready" {
				state = nodeState{Ready: condition.Status == "True", Reason: condition.Message, Reported: condition.LastHeartbeatTime}
			}
		}
		states[item.Metadata.Name] = state
	}
	return states, nil
}

// waitNodes waits until every node is ready. Those that were just switched on
// must have reported since: the API server may still hold what they said before
// their power was cut.
func (a *apiClient) waitNodes(ctx context.Context, plan *Plan, switchedOn []string, since time.Time) error {
	return await(ctx, func() error {
		states, err := a.nodes(ctx)
		if err != nil {
			return err
		}
		var not []string
		for _, node := range plan.Nodes {
			state, known := states[node.Name]
			switch {
			case !known:
				not = append(not, node.Name+" has not registered")
			case !state.Ready:
				not = append(not, node.Name+": "+state.Reason)
			case slices.Contains(switchedOn, node.Name) && state.Reported.Before(since):
				not = append(not, node.Name+" has not reported since it was switched on")
			}
		}
		if len(not) > 0 {
			return fmt.Errorf("nodes not ready: %s", strings.Join(not, "; "))
		}
		return nil
	})
}

// waitDNS waits until the cluster's DNS has at least one ready replica.
func (a *apiClient) waitDNS(ctx context.Context) error {
	const path = "/apis/apps/v1/namespaces/kube-system/deployments/coredns"
	return await(ctx, func() error {
		var deployment struct {
			Status struct{ ReadyReplicas, UnavailableReplicas int }
		}
		if err := a.get(ctx, path, &deployment); err != nil {
			return err
		}
		if deployment.Status.ReadyReplicas == 0 {
			return fmt.Errorf("coredns: none of its pods is ready")
		}
		return nil
	})
}

// auditLog is where requests to the API server are recorded.
func (p *Plan) auditLog() string {
	return filepath.Join(p.machineDir(controlPlaneName), "log", "audit.log")
}
