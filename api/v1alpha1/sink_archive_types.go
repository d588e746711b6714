package v1alpha1

// ArchiveSinkSpec is where a sink of type Archive keeps the log. docs/archive.md has the format.
//
// +kubebuilder:validation:XValidation:rule="has(self.bucket) != has(self.claimName)",message="it is kept in one place; set bucket or claimName, and not both"
// +kubebuilder:validation:XValidation:rule="has(self.bucket) == has(oldSelf.bucket) && (!has(self.claimName) || !has(oldSelf.claimName) || self.claimName == oldSelf.claimName)",message="the position of the sink is where the archive is, and that is changed; keep it, or remove the sink and add one of another name"
type ArchiveSinkSpec struct {
	// bucket of an S3-compatible store.
	// +optional
	Bucket *ArchiveBucketSpec `json:"bucket,omitempty"`

	// claimName names a PersistentVolumeClaim of the grid's namespace, which is there. The operator neither makes nor
	// deletes it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName,omitempty"`
}

// ArchiveBucketSpec is a place in a bucket. The store has to honour conditional creates (If-None-Match: *): a sink that
// finds that it does not stops with an error.
//
// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name && has(self.prefix) == has(oldSelf.prefix) && (!has(self.prefix) || self.prefix == oldSelf.prefix)",message="name or prefix is changed, and what was written is there; keep both. A sink can be removed, and another one added under another name"
// +kubebuilder:validation:XValidation:fieldPath=".endpoint",rule="self.?insecure.orValue('Refuse') == 'Accept' || !self.?endpoint.orValue('https://').startsWith('http://')",message="http:// sends orders and signatures in the clear; use https://, or write insecure: Accept beside it where that is meant, as in a lab"
// +kubebuilder:validation:XValidation:fieldPath=".insecure",rule="self.?insecure.orValue('Refuse') != 'Accept' || self.?endpoint.orValue('none').startsWith('http://')",message="Accept has no effect without an endpoint that begins with http://; remove insecure"
// +kubebuilder:validation:XValidation:fieldPath=".caSecret",rule="!has(self.caSecret) || self.?endpoint.orValue('none').startsWith('https://')",message="caSecret is for an endpoint that begins with https://; set endpoint, or remove caSecret"
type ArchiveBucketSpec struct {
	// name of the bucket, which is there.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9][-.a-z0-9]*[a-z0-9]$')",messageExpression="'%s is no name of a bucket; use lowercase letters, digits, points and hyphens, beginning and ending with a letter or digit'.format([self])"
	Name string `json:"name"`

	// prefix of the objects. Grids may share one: the grid's name is part of every object's name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._A-Za-z0-9]+(/[-._A-Za-z0-9]+)*$')",messageExpression="'%s is no prefix; use letters, digits, hyphens, underscores and points, with / between them'.format([self])"
	Prefix string `json:"prefix,omitempty"`

	// endpoint of the store, https://host:port. Default: that of AWS.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=300
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|[[][0-9A-Fa-f:]+[]])(:[0-9]{1,5})?$')",messageExpression="'%s is no endpoint; write it as https://host or https://host:port'.format([self])"
	Endpoint string `json:"endpoint,omitempty"`

	// region of the bucket. Default: us-east-1.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-a-zA-Z0-9]+$')",messageExpression="'%s is no region; use letters, digits and hyphens'.format([self])"
	Region string `json:"region,omitempty"`

	// credentialsSecretName names a Secret of the grid's namespace with the keys access-key-id and secret-access-key. They
	// need ListBucket of the bucket, and GetObject, PutObject and DeleteObject of its objects.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	CredentialsSecretName string `json:"credentialsSecretName"`

	// caSecret has the certificate authority of the endpoint, in PEM. Default: the authorities of the image.
	// +optional
	CASecret *SecretKey `json:"caSecret,omitempty"`

	// insecure is Refuse (the default: endpoint is https) or Accept.
	// +optional
	Insecure InsecurePolicy `json:"insecure,omitempty"`
}
