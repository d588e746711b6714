package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

const (
	maxManifest = 256 << 10
	// maxAround is what an archive has around its file.
	maxAround = 64 << 10
)

// Media types of layers that are a module.
var moduleTypes = []string{"application/wasm", "application/vnd.wasm.content.layer.v1+wasm", "application/vnd.module.wasm.content.layer.v1+wasm"}

// Media types of layers that are an archive.
const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerLayer    = "application/vnd.docker.image.rootfs.diff.tar.gzip"
)

// OCI fetches the module of an artifact or an image, whose reference has the digest of its manifest. credentials are those
// for the registry; nil: none. An error is an *Error.
func (c *Client) OCI(ctx context.Context, reference string, credentials *auth.Credential) ([]byte, error) {
	ref, err := registry.ParseReference(reference)
	if err == nil {
		err = ref.ValidateReferenceAsDigest()
	}
	if err != nil {
		return nil, &Error{NoModule, fmt.Sprintf("%s: %v; write REGISTRY/REPOSITORY@sha256:DIGEST", reference, err)}
	}
	ctx, web, end := c.begin(ctx)
	defer end()
	client := &auth.Client{Client: web, Header: http.Header{"User-Agent": {userAgent}}, Cache: auth.NewCache()}
	if credentials != nil {
		client.Credential = auth.StaticCredential(ref.Host(), *credentials)
	}
	repo := &remote.Repository{Client: client, Reference: ref, PlainHTTP: c.Insecure, MaxMetadataBytes: maxManifest,
		ManifestMediaTypes: []string{ocispec.MediaTypeImageManifest, dockerManifest, ocispec.MediaTypeImageIndex}}
	layer, err := c.layer(ctx, repo)
	if err != nil {
		return nil, c.explainRegistry(ctx, ref.Registry, credentials != nil, err)
	}
	most := int64(c.MaxBytes)
	if archived(layer.MediaType) {
		most += maxAround
	}
	if layer.Size > most {
		return nil, c.tooLarge(fmt.Sprintf("layer %s of %s", layer.Digest, reference), layer.Size)
	}
	body, err := repo.Blobs().Fetch(ctx, layer)
	if err != nil {
		return nil, c.explainRegistry(ctx, ref.Registry, credentials != nil, err)
	}
	defer body.Close() //nolint:errcheck // it was read
	blob, err := content.ReadAll(body, layer)
	if err != nil {
		return nil, c.explainRegistry(ctx, ref.Registry, credentials != nil, fmt.Errorf("layer %s: %w", layer.Digest, err))
	}
	if archived(layer.MediaType) {
		return c.unpack(blob, layer.MediaType)
	}
	return blob, nil
}

// layer returns the one that has the module.
func (c *Client) layer(ctx context.Context, repo *remote.Repository) (ocispec.Descriptor, error) {
	none := ocispec.Descriptor{}
	d, body, err := repo.Manifests().FetchReference(ctx, repo.Reference.Reference)
	if err != nil {
		return none, err
	}
	defer body.Close() //nolint:errcheck // it was read
	switch {
	case d.MediaType == ocispec.MediaTypeImageIndex:
		return none, &Error{NoModule, fmt.Sprintf("%s is an index of several manifests; name the digest of the one that has the module", repo.Reference)}
	case d.Size > maxManifest:
		return none, &Error{NoModule, fmt.Sprintf("the manifest %s has %d bytes, allowed: %d", repo.Reference, d.Size, maxManifest)}
	}
	text, err := content.ReadAll(body, d)
	if err != nil {
		return none, fmt.Errorf("manifest %s: %w", d.Digest, err)
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return none, &Error{NoModule, fmt.Sprintf("%s is no manifest: %v", repo.Reference, err)}
	}
	return choose(&m, repo.Reference.String())
}

// choose returns the layer of a WebAssembly media type, or the only layer if that is an archive.
func choose(m *ocispec.Manifest, name string) (ocispec.Descriptor, error) {
	var found []ocispec.Descriptor
	var types []string
	for _, l := range m.Layers {
		types = append(types, l.MediaType)
		for _, t := range moduleTypes {
			if l.MediaType == t {
				found = append(found, l)
			}
		}
	}
	if len(found) == 0 && len(m.Layers) == 1 && archived(m.Layers[0].MediaType) {
		found = m.Layers
	}
	if len(found) != 1 {
		return ocispec.Descriptor{}, &Error{NoModule, fmt.Sprintf("%s has layers of types [%.300s]; allowed: one of %s, or an image of one layer with one file",
			name, strings.Join(types, ", "), strings.Join(moduleTypes, ", "))}
	}
	return found[0], nil
}

// explainRegistry makes an *Error of an answer of a registry.
func (c *Client) explainRegistry(ctx context.Context, host string, credentials bool, err error) error {
	var answer *errcode.ErrorResponse
	denied := errors.Is(err, auth.ErrBasicCredentialNotFound)
	if errors.As(err, &answer) {
		denied = denied || answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden
	}
	known := &Error{}
	switch {
	case denied && credentials && !errors.As(err, &known):
		return &Error{Failed, fmt.Sprintf("%v: registry %s does not take the credentials of imagePullSecrets, or they may not pull there", err, host)}
	case denied && !errors.As(err, &known):
		return &Error{Failed, fmt.Sprintf("%v: registry %s wants credentials; name a Secret that has them in imagePullSecrets", err, host)}
	}
	return c.explain(ctx, err)
}
