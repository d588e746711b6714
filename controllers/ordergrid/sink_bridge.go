package ordergrid

import (
	"path"
	"slices"
	"strings"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

func bridgeArgs(_ *api.OrderGrid, s *api.SinkSpec) []string {
	b := s.Bridge
	args := []string{"bridge", "--to", strings.Join(b.Endpoints, ","), "--to-grid", b.Grid, "--region", b.Region}
	if b.Callback != "" {
		args = append(args, "--function", b.Callback)
	}
	if b.TLS != nil {
		args = append(args, "--to-tls-ca", path.Join(sinkSecrets, "ca.crt"), "--to-tls-cert", path.Join(sinkSecrets, "tls.crt"), "--to-tls-key", path.Join(sinkSecrets, "tls.key"), "--to-tls-name", b.TLS.ServerName)
	}
	return args
}

func bridgeSecrets(s *api.SinkSpec) (list []secretFile) {
	if t := s.Bridge.TLS; t != nil {
		for _, key := range []string{"ca.crt", "tls.crt", "tls.key"} {
			list = append(list, secretFile{t.SecretName, key, key})
		}
	}
	return list
}

// bridgePorts are those of the endpoints, and the one that nodes tell clients.
func bridgePorts(s *api.SinkSpec) []int32 {
	list := append(hostPorts(s.Bridge.Endpoints), api.DataPort)
	slices.Sort(list)
	return slices.Compact(list)
}
