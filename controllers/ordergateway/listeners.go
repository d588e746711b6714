package ordergateway

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
)

// streamArgs are those of the listener for WebSocket. Where the grid enforces authorization, clients with the permission
// Watch may read all orders; that takes TLS, since they prove who they are by a certificate or a token of Kubernetes.
func streamArgs(g *api.OrderGateway, l *api.GatewayListener, grid *gridEnd) []string {
	list := []string{"--websocket", ":" + strconv.Itoa(int(l.Port))}
	s := g.Spec.Streams
	if s == nil {
		s = &api.GatewayStreams{}
	}
	if s.ClientsFrom != nil {
		list = append(list, "--websocket-clients", path.Join(dirOf(volumeClients), clientsFile), "--websocket-tokens", dirOf(volumeTokens))
	}
	if s.MaxClients > 0 {
		list = append(list, "--websocket-max-connections", strconv.Itoa(int(s.MaxClients)))
	}
	for _, origin := range s.Origins {
		list = append(list, "--websocket-origin", origin)
	}
	if s.Console == api.ConsoleDisabled {
		list = append(list, "--websocket-console=false")
	}
	if s.Follow == api.FollowWanted {
		list = append(list, "--websocket-follow", "wanted")
	}
	if len(s.Regions) > 0 {
		list = append(list, "--websocket-regions", strings.Join(s.Regions, ","))
	}
	if len(s.PublishRegions) > 0 {
		list = append(list, "--websocket-publish-regions", strings.Join(s.PublishRegions, ","))
	}
	if p := s.PeersFrom; p != nil {
		list = append(list, "--websocket-peer", fmt.Sprintf("%s.%s.svc:%d", api.GatewayPeersName(g.Name), g.Namespace, l.Port), "--websocket-peer-token", path.Join(dirOf(volumePeers), peerFile))
		if l.TLS != nil {
			list = append(list, "--websocket-peer-name", cmp.Or(p.CertificateName, api.GatewayName(g.Name)+"."+g.Namespace+".svc"))
		}
	}
	if l.TLS == nil {
		return append(list, "--websocket-insecure-plain")
	}
	dir := dirOf(volumeOf(l))
	list = append(list, "--websocket-tls-cert", path.Join(dir, keyCert), "--websocket-tls-key", path.Join(dir, keyKey), "--websocket-tls-ca", path.Join(dir, keyCA))
	if grid.rules != "" {
		list = append(list, "--websocket-rules", path.Join(dirOf(volumeRules), rulesFile))
	}
	if grid.tokens {
		list = append(list, "--websocket-grid-tokens")
	}
	return list
}

// sqlArgs are those of the listener for PostgreSQL, with the further columns of the grid.
func sqlArgs(g *api.OrderGateway, l *api.GatewayListener, grid *gridEnd) []string {
	list := []string{"--postgresql", ":" + strconv.Itoa(int(l.Port))}
	for _, column := range grid.columns {
		list = append(list, "--postgresql-column", column)
	}
	s := g.Spec.SQL
	if s == nil {
		s = &api.GatewaySQL{}
	}
	if s.MaxConnections > 0 {
		list = append(list, "--postgresql-max-connections", strconv.Itoa(int(s.MaxConnections)))
	}
	if l.TLS == nil {
		return append(list, "--postgresql-insecure-plain")
	}
	dir := dirOf(volumeOf(l))
	list = append(list, "--postgresql-tls-cert", path.Join(dir, keyCert), "--postgresql-tls-key", path.Join(dir, keyKey), "--postgresql-tls-ca", path.Join(dir, keyCA),
		"--postgresql-rules", path.Join(dirOf(volumeRules), rulesFile))
	if s.UsersFrom != nil {
		list = append(list, "--postgresql-users", path.Join(dirOf(volumeUsers), usersFile))
	}
	return list
}

// protected reports whether a protocol is served over TLS.
func protected(g *api.OrderGateway, protocol api.GatewayProtocol) bool {
	l := g.Spec.Listener(protocol)
	return l != nil && l.TLS != nil
}

// needsRules reports whether a listener judges clients by the rules of the grid.
func needsRules(g *api.OrderGateway) bool {
	return protected(g, api.GatewayWebSocket) || protected(g, api.GatewayPostgreSQL)
}

// listenersCan returns why the grid cannot be served by the listeners, if it cannot.
func listenersCan(g *api.OrderGateway, grid *api.OrderGrid) problem {
	enforced := grid.Spec.Security.Enforced()
	switch {
	case g.Spec.Listener(api.GatewayFIX) != nil && g.Spec.Auth == api.GatewayAuthToken && !takesTokens(grid):
		return problem{reasonTokensNotTaken, fmt.Sprintf("spec.auth: with Token the nodes of OrderGrid %s judge tokens of FIX sessions, and they take none; set its spec.security.tls.clientAuth to None and authorization.mode to Enforce, or auth to another value", grid.Name)}
	case g.Spec.Listener(api.GatewayPostgreSQL) != nil && grid.Spec.Views == nil:
		return problem{reasonViewsMissing, fmt.Sprintf("spec.listeners: PostgreSQL asks the views of OrderGrid %s, which has none; set its spec.views, or remove the listener", grid.Name)}
	case protected(g, api.GatewayPostgreSQL) && !enforced:
		return problem{reasonNotEnforced, fmt.Sprintf("spec.listeners: PostgreSQL with TLS lets in whom the rules of OrderGrid %s give the permission Query, and it has none; set its spec.security.authorization.mode to Enforce", grid.Name)}
	case protected(g, api.GatewayWebSocket) && !enforced && (g.Spec.Streams == nil || g.Spec.Streams.ClientsFrom == nil):
		return problem{reasonNotEnforced, fmt.Sprintf("spec.streams: WebSocket lets in the clients of streams.clientsFrom, which is not set, and whom the rules of OrderGrid %s give the permission Watch, and it has none; set one of them", grid.Name)}
	}
	return problem{}
}

// streamAnswer is the part of the listener for WebSocket.
type streamAnswer struct {
	Ready      bool   `json:"ready"`
	Clients    int64  `json:"clients"`
	FileError  string `json:"fileError"`
	Partitions []struct {
		Partition string `json:"partition"`
		Error     string `json:"error"`
	} `json:"partitions"`
	Peers []peerAnswer `json:"peers"`
}

func (a *streamAnswer) unreachable() (list []string) {
	for _, p := range a.Partitions {
		if p.Error != "" {
			list = append(list, p.Partition+": "+p.Error)
		}
	}
	if len(list) == 0 && !a.Ready {
		return []string{"the logs are being looked for"}
	}
	return list
}

// sqlAnswer is the part of the listener for PostgreSQL.
type sqlAnswer struct {
	Connections int64    `json:"connections"`
	FileError   string   `json:"fileError"`
	NotReady    []string `json:"notReady"`
}

// unreachable lists what a pod does not reach of the grid, whatever listener needs it.
func (a *answer) unreachable() (list []string) {
	if f := a.Listeners.FIX; f != nil {
		list = append(list, f.Unreachable...)
	}
	if s := a.Listeners.WebSocket; s != nil && len(list) == 0 {
		list = s.unreachable()
	}
	if s := a.Listeners.PostgreSQL; s != nil && len(list) == 0 {
		list = s.NotReady
	}
	return list
}

// of is what a pod reports of a listener: whether it has it, how many clients are connected, and why it does not serve.
func (a *answer) of(protocol api.GatewayProtocol) (has bool, clients int64, lacks []string) {
	switch l := &a.Listeners; protocol {
	case api.GatewayFIX:
		if has = l.FIX != nil; has {
			clients, lacks = l.FIX.Sessions, l.FIX.Unreachable
		}
	case api.GatewayWebSocket:
		if has = l.WebSocket != nil; has {
			clients, lacks = l.WebSocket.Clients, l.WebSocket.unreachable()
		}
	case api.GatewayPostgreSQL:
		if has = l.PostgreSQL != nil; has {
			clients, lacks = l.PostgreSQL.Connections, l.PostgreSQL.NotReady
		}
	}
	return has, clients, lacks
}

// judgeClients: the clients that pods know are those of the files.
func judgeClients(o *observation) judgement {
	if o.gateway.Spec.Listener(api.GatewayWebSocket) == nil && o.gateway.Spec.Listener(api.GatewayPostgreSQL) == nil {
		return judgement{metav1.ConditionTrue, reasonNotServed, "there is no listener of protocol WebSocket or PostgreSQL"}
	}
	answers := o.answers()
	if len(answers) == 0 {
		return o.noAnswer()
	}
	for _, s := range answers {
		for _, text := range []string{s.streamFile(), s.sqlFile()} {
			if text != "" {
				return judgement{metav1.ConditionFalse, reasonFileInvalid, fmt.Sprintf("pod %s: %s; what was read before is in use until the file is mended", s.pod, messages.Cut(text, 512))}
			}
		}
	}
	return judgement{metav1.ConditionTrue, reasonLoaded, "the pods know the clients that the files have"}
}

func (a *answer) streamFile() string {
	if a.Listeners.WebSocket == nil {
		return ""
	}
	return a.Listeners.WebSocket.FileError
}

func (a *answer) sqlFile() string {
	if a.Listeners.PostgreSQL == nil {
		return ""
	}
	return a.Listeners.PostgreSQL.FileError
}

// listenerStatus is what the pods report of each listener.
func listenerStatus(o *observation) (list []api.GatewayListenerStatus) {
	for i := range o.gateway.Spec.Listeners {
		l := &o.gateway.Spec.Listeners[i]
		s := api.GatewayListenerStatus{Name: l.Name, Protocol: l.Protocol}
		for _, a := range o.answers() {
			has, clients, lacks := a.of(l.Protocol)
			s.Clients += clients
			switch {
			case has && len(lacks) == 0:
				s.ServingPods++
			case has && s.Message == "":
				s.Message = messages.Cut(fmt.Sprintf("pod %s: %s", a.pod, messages.Some(lacks)), 512)
			}
		}
		s.Clients = messages.Coarse(s.Clients)
		list = append(list, s)
	}
	return list
}
