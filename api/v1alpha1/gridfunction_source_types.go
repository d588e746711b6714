package v1alpha1

import corev1 "k8s.io/api/core/v1"

// FunctionModule is where a module is, and the digest of what it has to be.
//
// +kubebuilder:validation:XValidation:rule="(has(self.configMap) ? 1 : 0) + (has(self.oci) ? 1 : 0) + (has(self.http) ? 1 : 0) == 1",message="a module comes from one place: give one of configMap, oci and http"
type FunctionModule struct {
	// configMap is where the module is.
	// +optional
	ConfigMap *ConfigMapFile `json:"configMap,omitempty"`

	// oci is an artifact or an image in a registry.
	// +optional
	OCI *OCIModule `json:"oci,omitempty"`

	// http is a file of a web server.
	// +optional
	HTTP *HTTPModule `json:"http,omitempty"`

	// sha256 of the module, 64 hexadecimal digits, as sha256sum prints it: of the file, not of the manifest that has it. Another
	// content is not given to any grid.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{64}$')",messageExpression="'%s is no SHA-256; give the 64 lowercase hexadecimal digits that sha256sum prints'.format([self])"
	SHA256 string `json:"sha256"`
}

// Fetched reports whether the operator fetches the module from outside the cluster's API.
func (m *FunctionModule) Fetched() bool { return m.OCI != nil || m.HTTP != nil }

// OCIModule is a module in a registry: a layer of a WebAssembly media type, or an image with one layer that has one file.
type OCIModule struct {
	// reference is REGISTRY/REPOSITORY@sha256:DIGEST, the digest that of the manifest. A tag is not enough: what it names may
	// change.
	// +required
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-zA-Z0-9._-]+|[[][0-9a-fA-F:]+[]])(:[0-9]+)?(/[a-z0-9._-]+)+@sha256:[0-9a-f]{64}$')",messageExpression="'%s is no reference of a manifest; write REGISTRY/REPOSITORY@sha256:DIGEST, with the 64 digits that the registry printed when it was pushed'.format([self])"
	Reference string `json:"reference"`

	// imagePullSecrets are Secrets of the namespace, of type kubernetes.io/dockerconfigjson. The first that has credentials for
	// the registry is used; without one, none are sent.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// caBundle is a file with certificates of authorities, in PEM form, that vouch for the registry. Default: those that
	// the operator's image has, which are none unless they were added.
	// +optional
	CABundle *ConfigMapFile `json:"caBundle,omitempty"`

	// insecure set to Accept uses plain HTTP. The digests still hold; credentials can be read on the way.
	// +optional
	Insecure InsecurePolicy `json:"insecure,omitempty"`
}

// HTTPModule is a module that a web server has.
//
// +kubebuilder:validation:XValidation:fieldPath=".insecure",rule="!self.url.startsWith('http://') || self.?insecure.orValue('Refuse') == 'Accept'",message="the module would come by plain HTTP; give an https URL, or say insecure: Accept"
// +kubebuilder:validation:XValidation:fieldPath=".caBundle",rule="!self.url.startsWith('http://') || !has(self.caBundle)",message="nothing is verified over plain HTTP; remove caBundle, or give an https URL"
type HTTPModule struct {
	// url is where it is, such as https://files.trading.svc/limit.wasm.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/?#@[:space:]]+/[^#[:space:]]*$')",messageExpression="'%s is no URL of a file; write https://HOST/PATH, without a user, a password or a fragment'.format([self])"
	URL string `json:"url"`

	// caBundle is a file with certificates of authorities, in PEM form, that vouch for the server. Default: those that
	// the operator's image has, which are none unless they were added.
	// +optional
	CABundle *ConfigMapFile `json:"caBundle,omitempty"`

	// insecure set to Accept allows a URL that begins with http. The digest still holds.
	// +optional
	Insecure InsecurePolicy `json:"insecure,omitempty"`
}
