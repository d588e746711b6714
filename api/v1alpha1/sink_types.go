package v1alpha1

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// SinkSpec is one destination of committed orders.
//
// +kubebuilder:validation:XValidation:fieldPath=".file",rule="self.?file.?volume.orValue('EmptyDir') == 'EmptyDir' && oldSelf.?file.?volume.orValue('EmptyDir') == 'EmptyDir' || has(self.file) && has(oldSelf.file) && self.file == oldSelf.file",message="changed; the PersistentVolumeClaims of a running grid's pods stay as they were made; keep it as it was, or create a second OrderGrid and move the traffic"
// +kubebuilder:validation:XValidation:fieldPath=".type",rule="self.type == oldSelf.type",messageExpression="'%s was of type %s, and its place in the logs is of that; keep the type, or remove the sink and add one of another name'.format([self.name, oldSelf.type])"
// +kubebuilder:validation:XValidation:fieldPath=".file",rule="self.type == 'File' || !has(self.file)",messageExpression="'file is for type File, and sink %s is of type %s; remove file'.format([self.name, self.type])"
// +kubebuilder:validation:XValidation:fieldPath=".kafka",rule="self.type == 'Kafka' || !has(self.kafka)",messageExpression="'kafka is for type Kafka, and sink %s is of type %s; remove kafka'.format([self.name, self.type])"
// +kubebuilder:validation:XValidation:fieldPath=".kafka",rule="self.type != 'Kafka' || has(self.kafka)",messageExpression="'sink %s of type Kafka needs to know where to write; set kafka.brokers'.format([self.name])"
// +kubebuilder:validation:XValidation:fieldPath=".kafka.sasl",rule="self.?kafka.?sasl.?mechanism.orValue('none') != 'PLAIN' || has(self.kafka.tls)",message="mechanism PLAIN sends the password, and without kafka.tls in the clear; set kafka.tls, or use SCRAM-SHA-512"
// +kubebuilder:validation:XValidation:fieldPath=".kafka.topic",rule="!has(self.kafka) || !has(oldSelf.kafka) || self.kafka.topic == oldSelf.kafka.topic",messageExpression="'%s differs from %s, where the position of the sink is; keep it, or remove the sink and add one of another name'.format([self.kafka.topic, oldSelf.kafka.topic])"
// +kubebuilder:validation:XValidation:fieldPath=".postgres",rule="self.type == 'PostgreSQL' || !has(self.postgres)",messageExpression="'postgres is for type PostgreSQL, and sink %s is of type %s; remove postgres'.format([self.name, self.type])"
// +kubebuilder:validation:XValidation:fieldPath=".postgres",rule="self.type != 'PostgreSQL' || has(self.postgres)",messageExpression="'sink %s of type PostgreSQL needs to know where to write; set postgres.urlSecret'.format([self.name])"
// +kubebuilder:validation:XValidation:fieldPath=".postgres.schema",rule="!has(self.postgres) || !has(oldSelf.postgres) || self.postgres.schema == oldSelf.postgres.schema",messageExpression="'%s differs from %s, where the position of the sink is; keep it, or remove the sink and add one of another name'.format([self.postgres.schema, oldSelf.postgres.schema])"
// +kubebuilder:validation:XValidation:fieldPath=".archive",rule="self.type == 'Archive' || !has(self.archive)",messageExpression="'archive is for type Archive, and sink %s is of type %s; remove archive'.format([self.name, self.type])"
// +kubebuilder:validation:XValidation:fieldPath=".archive",rule="self.type != 'Archive' || has(self.archive)",messageExpression="'sink %s of type Archive needs to know where to write; set archive.bucket or archive.claimName'.format([self.name])"
// +kubebuilder:validation:XValidation:fieldPath=".bridge",rule="self.type == 'Bridge' || !has(self.bridge)",messageExpression="'bridge is for type Bridge, and sink %s is of type %s; remove bridge'.format([self.name, self.type])"
// +kubebuilder:validation:XValidation:fieldPath=".bridge",rule="self.type != 'Bridge' || has(self.bridge)",messageExpression="'sink %s of type Bridge needs to know where to write; set bridge.endpoints and bridge.grid'.format([self.name])"
// +kubebuilder:validation:XValidation:fieldPath=".bridge",rule="!has(self.bridge) || !has(oldSelf.bridge) || self.bridge.grid == oldSelf.bridge.grid && self.bridge.region == oldSelf.bridge.region && has(self.bridge.callback) == has(oldSelf.bridge.callback) && (!has(self.bridge.callback) || self.bridge.callback == oldSelf.bridge.callback)",message="grid, region or callback is changed; the position of the sink is there, and counts for what it took; keep them, or remove the sink and add one of another name"
// +kubebuilder:validation:XValidation:fieldPath=".content",rule="self.type in ['Kafka', 'PostgreSQL'] || self.?content.orValue('Orders') == 'Orders'",messageExpression="'%s is for types Kafka and PostgreSQL, and sink %s is of type %s; remove content'.format([self.content, self.name, self.type])"
// +kubebuilder:validation:XValidation:fieldPath=".content",rule="(self.?content.orValue('Orders') == 'Orders') == (oldSelf.?content.orValue('Orders') == 'Orders') && (self.?content.orValue('Orders') == 'Executions') == (oldSelf.?content.orValue('Orders') == 'Executions')",messageExpression="'%s is not what it was, %s: there would be a gap; keep it, or remove the sink and add one of another name'.format([self.?content.orValue('Orders'), oldSelf.?content.orValue('Orders')])"
// +kubebuilder:validation:XValidation:fieldPath=".kafka.executionsTopic",rule="!has(self.kafka) || !has(self.kafka.executionsTopic) || self.?content.orValue('Orders') != 'Orders'",messageExpression="'%s has no effect without executions; set content to OrdersAndExecutions or Executions, or remove executionsTopic'.format([self.kafka.executionsTopic])"
// +kubebuilder:validation:XValidation:fieldPath=".kafka.topic",rule="!has(self.kafka) || self.kafka.topic == '{grid}.orders' || self.?content.orValue('Orders') != 'Executions'",messageExpression="'%s is for orders, and has no effect with content Executions; remove topic, or set content to OrdersAndExecutions'.format([self.kafka.topic])"
// +kubebuilder:validation:XValidation:fieldPath=".kafka.executionsTopic",rule="!has(self.kafka) || !has(oldSelf.kafka) || (has(self.kafka.executionsTopic) ? self.kafka.executionsTopic : '{grid}.executions') == (has(oldSelf.kafka.executionsTopic) ? oldSelf.kafka.executionsTopic : '{grid}.executions')",message="changed, and the executions of before are in the other topic; keep it, or remove the sink and add one of another name"
// +kubebuilder:validation:XValidation:fieldPath=".resources",rule="self.type in ['Kafka', 'PostgreSQL', 'Archive', 'Bridge'] || !has(self.resources)",messageExpression="'resources are those of a sink with a pod of its own, and one of type %s has none; remove them'.format([self.type])"
// +kubebuilder:validation:XValidation:fieldPath=".name",rule="self.type == 'File' || self.name != 'file'",message="the name file is for a sink of type File; use another name"
type SinkSpec struct {
	// name of the sink, in the log of every partition, in metrics and in status: lowercase letters, digits and hyphens,
	// beginning with a letter, at most 32. The sink called file continues where spec.writeBehind stopped.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",messageExpression="'%s is no name of a sink; use lowercase letters, digits and hyphens, beginning with a letter and not ending with a hyphen, such as audit or archive-2'.format([self])"
	Name string `json:"name"`

	// type is File: appended to files of the primary's pod, fsync per batch; Kafka, PostgreSQL, Archive or Bridge: the operator
	// runs a pod that writes there; or External: a program of yours follows the log under this name and says what it holds.
	// +required
	// +unionDiscriminator
	Type SinkType `json:"type"`

	// file configures a sink of type File. Left out it is an EmptyDir of 1Gi.
	// +optional
	File *FileSinkSpec `json:"file,omitempty"`

	// kafka configures a sink of type Kafka.
	// +optional
	Kafka *KafkaSinkSpec `json:"kafka,omitempty"`

	// postgres configures a sink of type PostgreSQL.
	// +optional
	Postgres *PostgresSinkSpec `json:"postgres,omitempty"`

	// archive configures a sink of type Archive.
	// +optional
	Archive *ArchiveSinkSpec `json:"archive,omitempty"`

	// bridge configures a sink of type Bridge.
	// +optional
	Bridge *BridgeSinkSpec `json:"bridge,omitempty"`

	// content is Orders (the default), OrdersAndExecutions: what the orders did, too, in a grid with spec.execution.mode
	// Match, or Executions: that alone. For types Kafka and PostgreSQL.
	// +optional
	Content SinkContent `json:"content,omitempty"`

	// resources of the pod of a sink of type Kafka, PostgreSQL, Archive or Bridge. Default: requests of 100m CPU and 256Mi, a limit of 1Gi.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// SinkContent is what a sink writes.
//
// +kubebuilder:validation:Enum=Orders;OrdersAndExecutions;Executions
type SinkContent string

const (
	// SinkOrders is orders only.
	SinkOrders SinkContent = "Orders"
	// SinkOrdersAndExecutions is orders and what they did.
	SinkOrdersAndExecutions SinkContent = "OrdersAndExecutions"
	// SinkExecutions is what orders did, without the orders.
	SinkExecutions SinkContent = "Executions"
)

// Executions reports whether a sink writes executions.
func (c SinkContent) Executions() bool { return c == SinkOrdersAndExecutions || c == SinkExecutions }

// SinkType is the kind of a sink.
//
// +kubebuilder:validation:Enum=File;External;Kafka;PostgreSQL;Archive;Bridge
type SinkType string

const (
	// SinkFile appends one line per log entry to a file.
	SinkFile SinkType = "File"
	// SinkExternal is a program outside the grid that follows the log.
	SinkExternal SinkType = "External"
	// SinkKafka is a pod that writes to Kafka.
	SinkKafka SinkType = "Kafka"
	// SinkPostgreSQL is a pod that writes to PostgreSQL.
	SinkPostgreSQL SinkType = "PostgreSQL"
	// SinkArchive is a pod that writes the log itself to a bucket or a volume.
	SinkArchive SinkType = "Archive"
	// SinkBridge is a pod that puts what functions make of orders onto the log of another grid.
	SinkBridge SinkType = "Bridge"
)

// SinkNameFile is the sink that spec.writeBehind has. Its position in the log has no name, because it predates named sinks.
const SinkNameFile = "file"

// Sinks are the sinks of the grid in effect, by name, all with their defaults: those of spec.sinks, or that of
// spec.writeBehind. None: orders are held in memory.
func (g *OrderGrid) Sinks() []SinkSpec {
	sinks := slices.Clone(g.Spec.Sinks)
	if w := &g.Spec.WriteBehind; len(sinks) == 0 && w.Sink == WriteBehindFile {
		sinks = []SinkSpec{{Name: SinkNameFile, Type: SinkFile, File: w.File}}
	}
	for i := range sinks {
		switch s := &sinks[i]; s.Type {
		case SinkFile:
			s.File = s.File.withDefaults()
		case SinkKafka:
			s.Kafka = s.Kafka.withDefaults()
		case SinkPostgreSQL:
			s.Postgres = s.Postgres.withDefaults()
		case SinkBridge:
			if s.Bridge != nil && s.Bridge.Region == "" {
				s.Bridge = s.Bridge.DeepCopy()
				s.Bridge.Region = "bridge"
			}
		case SinkExternal, SinkArchive:
		}
	}
	slices.SortFunc(sinks, func(a, b SinkSpec) int { return cmp.Compare(a.Name, b.Name) })
	return sinks
}

// ReadableSink is the sink whose files the nodes serve for comparison with the log: file, or the first by name.
// nil if there is none.
func (g *OrderGrid) ReadableSink() *SinkSpec {
	sinks := g.FileSinks()
	for i := range sinks {
		if sinks[i].Name == SinkNameFile {
			return &sinks[i]
		}
	}
	if len(sinks) > 0 {
		return &sinks[0]
	}
	return nil
}

// FileSinks returns the sinks that write files on the pods.
func (g *OrderGrid) FileSinks() []SinkSpec {
	return slices.DeleteFunc(g.Sinks(), func(s SinkSpec) bool { return s.Type != SinkFile })
}

// HasClaim reports whether the sink writes to a PersistentVolumeClaim of each pod.
func (s *SinkSpec) HasClaim() bool { return s.Type == SinkFile && s.File.Volume == SinkVolumeClaim }

// OutlivesPods reports whether the sink's data survives the pods of the grid.
func (s *SinkSpec) OutlivesPods() bool { return s.Outside() || s.HasClaim() }

// Outside reports whether a program outside the grid's pods follows the log for the sink.
func (s *SinkSpec) Outside() bool { return s.Type != SinkFile }

// OutlivesShard reports whether the sink's data survives a shard's objects.
func (s *SinkSpec) OutlivesShard() bool {
	return s.Outside() || s.HasClaim() && s.File.WhenDeleted != ClaimDelete
}

// HasPod reports whether the operator runs a pod for the sink.
func (s *SinkSpec) HasPod() bool {
	return s.Type == SinkKafka || s.Type == SinkPostgreSQL || s.Type == SinkArchive || s.Type == SinkBridge
}

// SinksWithPods are the sinks that the operator runs a pod for, by name.
func (g *OrderGrid) SinksWithPods() []SinkSpec {
	return slices.DeleteFunc(g.Sinks(), func(s SinkSpec) bool { return !s.HasPod() })
}

// FileSinkSpec is the volume that a file sink writes to, one per pod.
//
// +kubebuilder:validation:XValidation:fieldPath=".storageClassName",rule="self.volume == 'PersistentVolumeClaim' || !has(self.storageClassName)",messageExpression="'%s has no effect on volume %s; set volume to PersistentVolumeClaim, or remove storageClassName'.format([self.storageClassName, self.volume])"
// +kubebuilder:validation:XValidation:fieldPath=".whenDeleted",rule="self.volume == 'PersistentVolumeClaim' || !has(self.whenDeleted)",messageExpression="'%s has no effect on volume %s, which always goes with its pod; set volume to PersistentVolumeClaim, or remove whenDeleted'.format([self.whenDeleted, self.volume])"
type FileSinkSpec struct {
	// volume is EmptyDir (the default, lost with the pod) or PersistentVolumeClaim.
	// +optional
	// +default="EmptyDir"
	// +kubebuilder:default=EmptyDir
	Volume SinkVolume `json:"volume,omitempty"`

	// size of the volume; of an EmptyDir it is the limit at which the kubelet evicts the pod. At least 16Mi,
	// default 1Gi.
	// +optional
	// +kubebuilder:default="1Gi"
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",messageExpression="'%s is not an amount; write it as 512Mi or 2Gi'.format([self])"
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 16777216 : !isQuantity(self) || quantity(self).compareTo(quantity('16Mi')) >= 0",messageExpression="'%s is too little; give at least 16Mi'.format([self])"
	Size resource.Quantity `json:"size,omitempty,omitzero"`

	// storageClassName of the claim. Default: the cluster's default class.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`

	// whenDeleted is how the claims are handled when the OrderGrid is deleted: Retain (default) or Delete.
	// +optional
	WhenDeleted ClaimPolicy `json:"whenDeleted,omitempty"`
}

// withDefaults sets the defaults that the API server sets only where file is present.
func (f *FileSinkSpec) withDefaults() *FileSinkSpec {
	full := FileSinkSpec{}
	if f != nil {
		full = *f.DeepCopy()
	}
	full.Volume = cmp.Or(full.Volume, SinkVolumeEmptyDir)
	if full.Size.IsZero() {
		full.Size = resource.MustParse("1Gi")
	}
	return &full
}

// SinkVolume is a kind of volume for a file sink.
//
// +kubebuilder:validation:Enum=EmptyDir;PersistentVolumeClaim
type SinkVolume string

const (
	// SinkVolumeEmptyDir is a directory that is deleted with its pod.
	SinkVolumeEmptyDir SinkVolume = "EmptyDir"
	// SinkVolumeClaim is a PersistentVolumeClaim per pod.
	SinkVolumeClaim SinkVolume = "PersistentVolumeClaim"
)

// ClaimPolicy selects whether a claim outlives its grid.
//
// +kubebuilder:validation:Enum=Retain;Delete
type ClaimPolicy string

const (
	// ClaimRetain keeps the claims.
	ClaimRetain ClaimPolicy = "Retain"
	// ClaimDelete deletes the claims with the grid.
	ClaimDelete ClaimPolicy = "Delete"
)

// WriteBehindSpec is the one sink of grids that predate spec.sinks.
//
// +kubebuilder:validation:XValidation:fieldPath=".file",rule="self.sink == 'File' || !has(self.file)",messageExpression="'the file sink is configured although spec.writeBehind.sink is %s; set sink to File, or remove file'.format([self.sink])"
type WriteBehindSpec struct {
	// sink is Hold (orders stay in memory only) or File (spec.sinks has it as {name: file, type: File}). Default Hold.
	// +optional
	// +default="Hold"
	// +kubebuilder:default=Hold
	Sink WriteBehindSink `json:"sink,omitempty"`

	// file configures the sink File.
	// +optional
	File *FileSinkSpec `json:"file,omitempty"`
}

// WriteBehindSink names the sink of spec.writeBehind.
//
// +kubebuilder:validation:Enum=Hold;File
type WriteBehindSink string

const (
	// WriteBehindHold is no sink.
	WriteBehindHold WriteBehindSink = "Hold"
	// WriteBehindFile is the sink called file.
	WriteBehindFile WriteBehindSink = "File"
)
