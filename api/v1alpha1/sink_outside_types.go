package v1alpha1

import "cmp"

// KafkaSinkSpec is where a sink of type Kafka writes. A transaction per batch holds the orders and their position: a
// consumer with read_committed sees each order once, in the order of its partition.
//
// +kubebuilder:validation:XValidation:fieldPath=".tls",rule="has(self.tls) || self.?insecure.orValue('Refuse') == 'Accept'",message="without tls every order crosses the network in the clear, to brokers that are not authenticated; set tls.secretName to a Secret with their authority in ca.crt, or write insecure: Accept beside it where that is meant, as in a lab"
// +kubebuilder:validation:XValidation:fieldPath=".insecure",rule="!has(self.tls) || self.?insecure.orValue('Refuse') != 'Accept'",message="Accept has no effect with tls; remove insecure"
type KafkaSinkSpec struct {
	// brokers are where the cluster is found first, host:port each; the others are learnt from them.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=260
	// +kubebuilder:validation:XValidation:rule="self.all(b, b.matches('^([A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?|[[][0-9A-Fa-f:]+[]]):[0-9]{1,5}$'))",message="not all are host:port; write each as kafka-0.kafka:9093"
	Brokers []string `json:"brokers"`

	// topic that orders are written to; {grid} stands for the grid's name. It has as many partitions as the grid. Default
	// {grid}.orders.
	// +optional
	// +default="{grid}.orders"
	// +kubebuilder:default="{grid}.orders"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=180
	// +kubebuilder:validation:XValidation:rule="self.replace('{grid}', 'g').matches('^[A-Za-z0-9._-]+$') && self != '.' && self != '..'",messageExpression="'%s is no name of a topic; use letters, digits, points, underscores and hyphens, and {grid} for the name of the grid'.format([self])"
	Topic string `json:"topic,omitempty"`

	// executionsTopic is where executions are written, of a sink with content OrdersAndExecutions or Executions; {grid} stands
	// for the grid's name. Default {grid}.executions.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=180
	// +kubebuilder:validation:XValidation:rule="self.replace('{grid}', 'g').matches('^[A-Za-z0-9._-]+$') && self != '.' && self != '..'",messageExpression="'%s is no name of a topic; use letters, digits, points, underscores and hyphens, and {grid} for the name of the grid'.format([self])"
	ExecutionsTopic string `json:"executionsTopic,omitempty"`

	// key of the records: ClOrdID (the default) or Symbol.
	// +optional
	// +default="ClOrdID"
	// +kubebuilder:default=ClOrdID
	Key KafkaKey `json:"key,omitempty"`

	// format of the records: FIX (the default: the message verbatim), JSON or Protobuf.
	// +optional
	// +default="FIX"
	// +kubebuilder:default=FIX
	Format KafkaFormat `json:"format,omitempty"`

	// replicationFactor of the topic, where the sink makes it. Default: that of the brokers.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	ReplicationFactor int32 `json:"replicationFactor,omitempty"`

	// tls encrypts the connections and authenticates the brokers. Required unless insecure is Accept.
	// +optional
	TLS *KafkaTLSSpec `json:"tls,omitempty"`

	// insecure is Refuse (the default: tls is required) or Accept: orders are sent in the clear.
	// +optional
	Insecure InsecurePolicy `json:"insecure,omitempty"`

	// sasl authenticates the sink by name and password.
	// +optional
	SASL *KafkaSASLSpec `json:"sasl,omitempty"`
}

// KafkaKey is what the key of a record is made of.
//
// +kubebuilder:validation:Enum=ClOrdID;Symbol
type KafkaKey string

const (
	// KafkaKeyClOrdID is the order's ClOrdID.
	KafkaKeyClOrdID KafkaKey = "ClOrdID"
	// KafkaKeySymbol is its symbol.
	KafkaKeySymbol KafkaKey = "Symbol"
)

// KafkaFormat is the encoding of a record.
//
// +kubebuilder:validation:Enum=FIX;JSON;Protobuf
type KafkaFormat string

const (
	// KafkaFormatFIX is the FIX message verbatim.
	KafkaFormatFIX KafkaFormat = "FIX"
	// KafkaFormatJSON is an object with the order's fields.
	KafkaFormatJSON KafkaFormat = "JSON"
	// KafkaFormatProtobuf is a message of the schema in the repository.
	KafkaFormatProtobuf KafkaFormat = "Protobuf"
)

// KafkaTLSSpec names the certificates.
type KafkaTLSSpec struct {
	// secretName names a Secret of the grid's namespace: ca.crt is the authority of the brokers, tls.crt and tls.key are the
	// client certificate where clientCertificate is Present.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`

	// clientCertificate is None (the default) or Present: the sink authenticates to the brokers by tls.crt and tls.key.
	// +optional
	// +default="None"
	// +kubebuilder:default=None
	ClientCertificate KafkaClientCertificate `json:"clientCertificate,omitempty"`
}

// KafkaClientCertificate selects whether a sink presents a certificate.
//
// +kubebuilder:validation:Enum=None;Present
type KafkaClientCertificate string

const (
	// KafkaClientCertificateNone presents none.
	KafkaClientCertificateNone KafkaClientCertificate = "None"
	// KafkaClientCertificatePresent presents that of the Secret.
	KafkaClientCertificatePresent KafkaClientCertificate = "Present"
)

// KafkaSASLSpec names user and password.
type KafkaSASLSpec struct {
	// mechanism is SCRAM-SHA-512 (the default), SCRAM-SHA-256 or PLAIN, which needs tls: it sends the password.
	// +optional
	// +default="SCRAM-SHA-512"
	// +kubebuilder:default="SCRAM-SHA-512"
	Mechanism KafkaSASLMechanism `json:"mechanism,omitempty"`

	// secretName names a Secret of the grid's namespace with the keys username and password.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName"`
}

// KafkaSASLMechanism is how a password is proven.
//
// +kubebuilder:validation:Enum=SCRAM-SHA-512;SCRAM-SHA-256;PLAIN
type KafkaSASLMechanism string

// PostgresSinkSpec is where a sink of type PostgreSQL writes. docs/postgres.md has its tables.
type PostgresSinkSpec struct {
	// urlSecret has the connection string, postgres://user:password@host:5432/database. sslmode is verify-full unless it is
	// written otherwise.
	// +required
	URLSecret SecretKey `json:"urlSecret"`

	// caSecret has the certificate authority of the server, in PEM. Without it sslrootcert of the connection string counts.
	// +optional
	CASecret *SecretKey `json:"caSecret,omitempty"`

	// schema of the tables. Default ordergrid.
	// +optional
	// +default="ordergrid"
	// +kubebuilder:default=ordergrid
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z_][a-z0-9_]*$') && !self.startsWith('pg_')",messageExpression="'%s is no name of a schema; use lowercase letters, digits and underscores, not beginning with a digit or pg_'.format([self])"
	Schema string `json:"schema,omitempty"`

	// migrate is Job (the default: a Job makes the tables, or brings them to the version of this release, before the sink
	// starts) or Never (an administrator runs `grid-sink postgres migrate`; the sink's user needs no right to create).
	// +optional
	// +default="Job"
	// +kubebuilder:default=Job
	Migrate MigratePolicy `json:"migrate,omitempty"`
}

// MigratePolicy selects who makes the tables.
//
// +kubebuilder:validation:Enum=Job;Never
type MigratePolicy string

const (
	// MigrateJob is a Job of the operator.
	MigrateJob MigratePolicy = "Job"
	// MigrateNever leaves it to an administrator.
	MigrateNever MigratePolicy = "Never"
)

// SecretKey is one key of a Secret of the grid's namespace.
type SecretKey struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// key in it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._A-Za-z0-9]+$')",messageExpression="'%s is no key of a Secret; use letters, digits, hyphens, underscores and points'.format([self])"
	Key string `json:"key"`
}

// withDefaults sets the defaults that the API server sets.
func (k *KafkaSinkSpec) withDefaults() *KafkaSinkSpec {
	full := KafkaSinkSpec{}
	if k != nil {
		full = *k.DeepCopy()
	}
	full.Topic = cmp.Or(full.Topic, "{grid}.orders")
	full.Key = cmp.Or(full.Key, KafkaKeyClOrdID)
	full.Format = cmp.Or(full.Format, KafkaFormatFIX)
	if full.TLS != nil {
		full.TLS.ClientCertificate = cmp.Or(full.TLS.ClientCertificate, KafkaClientCertificateNone)
	}
	if full.SASL != nil {
		full.SASL.Mechanism = cmp.Or(full.SASL.Mechanism, "SCRAM-SHA-512")
	}
	return &full
}

func (p *PostgresSinkSpec) withDefaults() *PostgresSinkSpec {
	full := PostgresSinkSpec{}
	if p != nil {
		full = *p.DeepCopy()
	}
	full.Schema = cmp.Or(full.Schema, "ordergrid")
	full.Migrate = cmp.Or(full.Migrate, MigrateJob)
	return &full
}
