package gridfunction

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// dockerHub is what files of credentials call docker.io.
var dockerHub = []string{"index.docker.io", "docker.io"}

// credentials returns those for the registry of a module, of the first Secret that has them; nil without a Secret. They
// are sent to no other host: a Secret is no way to send what is in it elsewhere.
func (r *Reconciler) credentials(ctx context.Context, namespace string, o *api.OCIModule) (*auth.Credential, error) {
	no := func(format string, args ...any) error {
		return &Problem{Reason: reasonFetchFailed, Text: "spec.module.oci.imagePullSecrets: " + fmt.Sprintf(format, args...), Passing: true}
	}
	ref, err := registry.ParseReference(o.Reference)
	if err != nil {
		return nil, &Problem{Reason: reasonNoModule, Text: fmt.Sprintf("spec.module.oci.reference: %v", err)}
	}
	hosts := []string{ref.Host()}
	if ref.Registry == "docker.io" {
		hosts = append(hosts, dockerHub...)
	}
	for _, name := range o.ImagePullSecrets {
		var s corev1.Secret
		switch err := r.Live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name.Name}, &s); {
		case apierrors.IsNotFound(err):
			return nil, no("there is no Secret %s in namespace %s; create it, or correct the name", name.Name, namespace)
		case apierrors.IsForbidden(err):
			return nil, no("the operator may not read Secret %s; an administrator lets it, by functions.pullSecrets of its chart with namespace %s", name.Name, namespace)
		case err != nil:
			return nil, fmt.Errorf("read Secret %s: %w", name.Name, err)
		case s.Type != corev1.SecretTypeDockerConfigJson:
			return nil, no("Secret %s is of type %q; allowed: %s, as kubectl create secret docker-registry makes it", name.Name, s.Type, corev1.SecretTypeDockerConfigJson)
		}
		store, err := credentials.NewMemoryStoreFromDockerConfig(s.Data[corev1.DockerConfigJsonKey])
		if err != nil {
			return nil, no("Secret %s has no credentials in key %s, or they cannot be read", name.Name, corev1.DockerConfigJsonKey)
		}
		for _, host := range hosts {
			if c, err := store.Get(ctx, host); err == nil && c != auth.EmptyCredential {
				return &c, nil
			}
		}
	}
	if len(o.ImagePullSecrets) > 0 {
		return nil, no("none of the Secrets has credentials for registry %s; add them, or remove the Secrets to send none", ref.Host())
	}
	return nil, nil //nolint:nilnil // none are sent
}
