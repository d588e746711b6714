package ordergrid

import (
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// archiveDir is where the claim of an archive is in its pod.
const archiveDir = "/var/lib/ordergrid/archive"

func archiveArgs(_ *api.OrderGrid, s *api.SinkSpec) []string {
	b := s.Archive.Bucket
	if b == nil {
		return []string{"archive", "--url", archiveDir}
	}
	return []string{"archive", "--url", bucketURL(b, sinkSecrets), "--credentials-dir", sinkSecrets}
}

func archiveSecrets(s *api.SinkSpec) []secretFile {
	b := s.Archive.Bucket
	if b == nil {
		return nil
	}
	return bucketSecrets(b)
}

// archiveVolume is the claim that spec names.
func archiveVolume(s *api.SinkSpec) *corev1.Volume {
	if s.Archive.ClaimName == "" {
		return nil
	}
	return &corev1.Volume{Name: "archive", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: s.Archive.ClaimName}}}
}

// archivePorts is that of the store; a claim is reached by the kubelet.
func archivePorts(s *api.SinkSpec) []int32 {
	return bucketPorts(s.Archive.Bucket)
}

// bucketPorts is that of a bucket; none without one.
func bucketPorts(b *api.ArchiveBucketSpec) []int32 {
	if b == nil {
		return nil
	}
	u, err := url.Parse(b.Endpoint)
	if err != nil || b.Endpoint == "" {
		return []int32{443}
	}
	if n, err := strconv.ParseInt(u.Port(), 10, 32); err == nil {
		return []int32{int32(n)}
	}
	if u.Scheme == "http" {
		return []int32{80}
	}
	return []int32{443}
}
