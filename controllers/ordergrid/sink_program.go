package ordergrid

import (
	"cmp"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// sinkSecrets is where the Secrets of a sink are in its pods. The kubelet replaces the files when a Secret changes, and
// grid-sink reads them anew for each connection.
const sinkSecrets = "/etc/ordergrid/sink"

// sinkProgram is what grid-sink needs for one type of sink. A further type is a row of sinkPrograms, and a case of
// api.SinkSpec.HasPod.
type sinkProgram struct {
	// command line, without what is of the grid.
	args func(grid *api.OrderGrid, s *api.SinkSpec) []string
	// secrets are keys of Secrets and the files, below sinkSecrets, that they become.
	secrets func(s *api.SinkSpec) []secretFile
	// prepare is the command line of a Job that has to succeed before the pod starts; nil: there is none.
	prepare func(grid *api.OrderGrid, s *api.SinkSpec) []string
	// volume that the target is on; nil: it is elsewhere.
	volume func(s *api.SinkSpec) *corev1.Volume
	// ports of the target, as far as spec tells; none: any.
	ports func(s *api.SinkSpec) []int32
}

type secretFile struct{ secret, key, file string }

var sinkPrograms = map[api.SinkType]sinkProgram{
	api.SinkKafka:      {args: kafkaArgs, secrets: kafkaSecrets, ports: kafkaPorts},
	api.SinkPostgreSQL: {args: postgresArgs, secrets: postgresSecrets, prepare: postgresPrepare},
	api.SinkArchive:    {args: archiveArgs, secrets: archiveSecrets, volume: archiveVolume, ports: archivePorts},
	api.SinkBridge:     {args: bridgeArgs, secrets: bridgeSecrets, ports: bridgePorts},
}

func kafkaArgs(grid *api.OrderGrid, s *api.SinkSpec) []string {
	k := s.Kafka
	args := []string{"kafka", "--broker", strings.Join(k.Brokers, ",")}
	if s.Content == api.SinkExecutions {
		args = append(args, "--only-executions")
	} else {
		args = append(args, "--topic", strings.ReplaceAll(k.Topic, "{grid}", grid.Name))
	}
	args = append(args, "--key", string(k.Key), "--format", strings.ToLower(string(k.Format)))
	if s.Content.Executions() {
		args = append(args, "--executions-topic", strings.ReplaceAll(cmp.Or(k.ExecutionsTopic, "{grid}.executions"), "{grid}", grid.Name))
	}
	if k.ReplicationFactor > 0 {
		args = append(args, "--replication-factor", strconv.Itoa(int(k.ReplicationFactor)))
	}
	if k.TLS != nil {
		args = append(args, "--kafka-ca", path.Join(sinkSecrets, "ca.crt"))
		if k.TLS.ClientCertificate == api.KafkaClientCertificatePresent {
			args = append(args, "--kafka-cert", path.Join(sinkSecrets, "tls.crt"), "--kafka-key", path.Join(sinkSecrets, "tls.key"))
		}
	}
	if k.SASL != nil {
		args = append(args, "--sasl-mechanism", string(k.SASL.Mechanism), "--sasl-user-file", path.Join(sinkSecrets, "username"), "--sasl-password-file", path.Join(sinkSecrets, "password"))
	}
	return args
}

func kafkaSecrets(s *api.SinkSpec) (list []secretFile) {
	if t := s.Kafka.TLS; t != nil {
		list = append(list, secretFile{t.SecretName, "ca.crt", "ca.crt"})
		if t.ClientCertificate == api.KafkaClientCertificatePresent {
			list = append(list, secretFile{t.SecretName, "tls.crt", "tls.crt"}, secretFile{t.SecretName, "tls.key", "tls.key"})
		}
	}
	if a := s.Kafka.SASL; a != nil {
		list = append(list, secretFile{a.SecretName, "username", "username"}, secretFile{a.SecretName, "password", "password"})
	}
	return list
}

// kafkaPorts are those of the brokers in spec: the others of a cluster have the same.
func kafkaPorts(s *api.SinkSpec) []int32 { return hostPorts(s.Kafka.Brokers) }

// hostPorts are the ports of host:port.
func hostPorts(addrs []string) (list []int32) {
	for _, addr := range addrs {
		if n, err := strconv.ParseInt(addr[strings.LastIndexByte(addr, ':')+1:], 10, 32); err == nil {
			list = append(list, int32(n))
		}
	}
	return list
}

func postgresArgs(_ *api.OrderGrid, s *api.SinkSpec) []string {
	args := append([]string{"postgres"}, postgresConnection(s)...)
	switch s.Content {
	case api.SinkOrdersAndExecutions:
		args = append(args, "--executions")
	case api.SinkExecutions:
		args = append(args, "--only-executions")
	case api.SinkOrders:
	}
	return args
}

func postgresPrepare(_ *api.OrderGrid, s *api.SinkSpec) []string {
	if s.Postgres.Migrate == api.MigrateNever {
		return nil
	}
	return append([]string{"postgres", "migrate"}, postgresConnection(s)...)
}

func postgresConnection(s *api.SinkSpec) []string {
	args := []string{"--url-file", path.Join(sinkSecrets, "url"), "--schema", s.Postgres.Schema}
	if s.Postgres.CASecret != nil {
		args = append(args, "--sslrootcert", path.Join(sinkSecrets, "ca.crt"))
	}
	return args
}

func postgresSecrets(s *api.SinkSpec) []secretFile {
	p := s.Postgres
	list := []secretFile{{p.URLSecret.Name, p.URLSecret.Key, "url"}}
	if c := p.CASecret; c != nil {
		list = append(list, secretFile{c.Name, c.Key, "ca.crt"})
	}
	return list
}

// sinkSecretVolume has the files of a sink's Secrets; nil if it needs none.
func sinkSecretVolume(files []secretFile) *corev1.Volume {
	if len(files) == 0 {
		return nil
	}
	v := &corev1.Volume{Name: "secrets", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: ptr.To[int32](0o440)}}}
	for _, f := range files {
		v.Projected.Sources = append(v.Projected.Sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: f.secret}, Items: []corev1.KeyToPath{{Key: f.key, Path: f.file}},
		}})
	}
	return v
}
