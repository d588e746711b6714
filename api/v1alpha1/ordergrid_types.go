package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// OrderGridSpec is the desired state of an OrderGrid.
//
// +kubebuilder:validation:XValidation:fieldPath=".minInSync",rule="self.replicas < 1 || self.minInSync <= self.replicas",messageExpression="'%d is more than spec.replicas %d, so no order could ever be accepted; set minInSync to at most %d'.format([self.minInSync, self.replicas, self.replicas])"
// +kubebuilder:validation:XValidation:fieldPath=".replicas",rule="self.replicas != 1 || oldSelf.replicas == 1 || (has(self.singleCopy) && self.singleCopy == 'Accept')",messageExpression="'1 would leave one copy of every order where there are %d now, and the orders of a pod that ends would be lost with it; keep at least 2, or set spec.singleCopy to Accept with the same change'.format([oldSelf.replicas])"
// +kubebuilder:validation:XValidation:fieldPath=".resources",rule="!has(self.resources) || !has(self.resources.limits) || !('memory' in self.resources.limits) || quantity(string(self.resources.limits['memory'])).compareTo(quantity(string(self.memory)).add(quantity('256Mi'))) >= 0",messageExpression="'limits.memory: %s leaves less than 256Mi beside the %s of spec.memory, and the node would be killed when it is full; raise the limit, lower spec.memory, or leave the limit out'.format([self.resources.limits['memory'], self.memory])"
// +kubebuilder:validation:XValidation:fieldPath=".retention.policy",rule="self.?retention.?policy.orValue('KeepAll') != 'FreeDownstream' || self.?writeBehind.?file.?volume.orValue('EmptyDir') == 'PersistentVolumeClaim' || has(self.sinks) && self.sinks.exists(s, s.type != 'File' || s.?file.?volume.orValue('EmptyDir') == 'PersistentVolumeClaim')",message="FreeDownstream needs a sink that outlives the pods, or what is freed would be lost with them; give one of spec.sinks type Kafka, PostgreSQL, Archive or External, or file.volume PersistentVolumeClaim, or keep policy KeepAll"
// +kubebuilder:validation:XValidation:fieldPath=".sinks",rule="!has(self.sinks) || !self.sinks.exists(s, s.?file.?volume.orValue('EmptyDir') == 'PersistentVolumeClaim' && s.file.?whenDeleted.orValue('Retain') == 'Retain') || !self.sinks.exists(s, s.?file.?whenDeleted.orValue('Retain') == 'Delete')",message="file.whenDeleted is Retain in one sink and Delete in another; the claims of a grid's pods stay or go together: give all sinks with a PersistentVolumeClaim the same"
// +kubebuilder:validation:XValidation:fieldPath=".views",rule="!has(self.views) || !isQuantity(string(self.views.memory)) || !isQuantity(string(self.memory)) || quantity(string(self.views.memory)).compareTo(quantity(string(self.memory))) <= 0",messageExpression="'memory: %s is more than the %s of spec.memory; give at most that'.format([self.views.memory, self.memory])"
// +kubebuilder:validation:XValidation:fieldPath=".resources",rule="!has(self.views) || !isQuantity(string(self.views.memory)) || !has(self.resources) || !has(self.resources.limits) || !('memory' in self.resources.limits) || quantity(string(self.resources.limits['memory'])).compareTo(quantity(string(self.memory)).add(quantity(string(self.views.memory))).add(quantity('256Mi'))) >= 0",messageExpression="'limits.memory: %s leaves less than 256Mi beside the %s of spec.memory and the %s of spec.views.memory; raise the limit, lower one of them, or leave the limit out'.format([self.resources.limits['memory'], self.memory, self.views.memory])"
// +kubebuilder:validation:XValidation:fieldPath=".orderIndex",rule="!has(self.orderIndex) || has(self.views)",message="columns of views, and spec.views is not set; set it, for example to {copies: All}, or remove orderIndex"
// +kubebuilder:validation:XValidation:fieldPath=".prefault",rule="!has(self.prefault) || !isQuantity(string(self.prefault)) || !isQuantity(string(self.memory)) || quantity(string(self.prefault)).compareTo(quantity(string(self.memory))) <= 0",messageExpression="'%s is more than the %s of spec.memory; give at most that, or 0'.format([self.prefault, self.memory])"
// +kubebuilder:validation:XValidation:fieldPath=".resources",rule="!has(self.placement.cpu) || self.placement.cpu.policy != 'Exclusive' || !has(self.resources) || !(has(self.resources.requests) && 'cpu' in self.resources.requests || has(self.resources.limits) && 'cpu' in self.resources.limits)",message="cpu is given twice: with spec.placement.cpu.policy Exclusive the request and the limit are spec.placement.cpu.cores; remove cpu from spec.resources, or set policy to Shared"
// +kubebuilder:validation:XValidation:fieldPath=".resources",rule="!has(self.placement.cpu) || self.placement.cpu.policy != 'Exclusive' || !has(self.resources) || !has(self.resources.requests) || !has(self.resources.limits) || !('memory' in self.resources.requests) || !('memory' in self.resources.limits) || quantity(string(self.resources.requests['memory'])).compareTo(quantity(string(self.resources.limits['memory']))) == 0",messageExpression="'requests.memory: %s is not limits.memory %s, but only a pod whose requests are its limits gets processors of its own (spec.placement.cpu.policy Exclusive); give both the same, or one of them'.format([self.resources.requests['memory'], self.resources.limits['memory']])"
// +kubebuilder:validation:XValidation:fieldPath=".fabric",rule="has(self.fabric) == has(oldSelf.fabric) && (!has(self.fabric) || self.fabric.network == oldSelf.fabric.network)",message="changed; the copies of a running grid reach each other by one network; keep it as it was, or create a second OrderGrid and move the traffic"
// +kubebuilder:validation:XValidation:fieldPath=".writeBehind",rule="self.?writeBehind.?sink.orValue('Hold') != 'File' || (has(self.sinks) ? size(self.sinks) : 0) == 0",message="sink File beside spec.sinks, which has all the sinks there are; remove writeBehind, and have the sink in spec.sinks as {name: file, type: File} with the same file"
// +kubebuilder:validation:XValidation:fieldPath=".sinks",rule="self.?writeBehind.?sink.orValue('Hold') == 'File' || oldSelf.?writeBehind.?sink.orValue('Hold') == 'File' || !has(self.sinks) || self.sinks.all(n, n.name != 'file') || has(oldSelf.sinks) && oldSelf.sinks.exists(o, o.name == 'file')",message="a sink called file is added to a running grid; that name is for the sink that spec.writeBehind had, or that the grid began with; use another name"
// +kubebuilder:validation:XValidation:fieldPath=".sinks",rule="!has(self.sinks) || self.sinks.all(n, n.?file.?volume.orValue('EmptyDir') == 'EmptyDir' || has(oldSelf.sinks) && oldSelf.sinks.exists(o, o.name == n.name) || n.name == 'file' && oldSelf.?writeBehind.?sink.orValue('Hold') == 'File')",message="a sink with a PersistentVolumeClaim is added to a running grid, whose pods were made without; use file.volume EmptyDir, or create a second OrderGrid with the sink and move the traffic"
// +kubebuilder:validation:XValidation:fieldPath=".sinks",rule="!has(oldSelf.sinks) || oldSelf.sinks.all(o, o.?file.?volume.orValue('EmptyDir') == 'EmptyDir' || has(self.sinks) && self.sinks.exists(n, n.name == o.name) || o.name == 'file' && self.?writeBehind.?sink.orValue('Hold') == 'File')",message="a sink with a PersistentVolumeClaim is taken from a running grid, whose pods were made with it; put it back, or create a second OrderGrid without it and move the traffic"
// +kubebuilder:validation:XValidation:fieldPath=".sinks",rule="oldSelf.?writeBehind.?sink.orValue('Hold') != 'File' || self.?writeBehind.?sink.orValue('Hold') == 'File' || (oldSelf.?writeBehind.?file.?volume.orValue('EmptyDir') == 'EmptyDir' ? !has(self.sinks) || self.sinks.all(n, n.name != 'file' || n.?file.?volume.orValue('EmptyDir') == 'EmptyDir') : has(self.sinks) && self.sinks.exists(n, n.name == 'file' && has(n.file) && dyn(n.file) == dyn(oldSelf.writeBehind.file)))",message="spec.writeBehind is gone, and no sink takes its place; have it in spec.sinks as {name: file, type: File} with the same file, whose PersistentVolumeClaims belong to the running pods"
// +kubebuilder:validation:XValidation:fieldPath=".writeBehind",rule="self.?writeBehind.?sink.orValue('Hold') != 'File' || (oldSelf.?writeBehind.?sink.orValue('Hold') == 'File' ? (self.?writeBehind.?file.?volume.orValue('EmptyDir') == 'EmptyDir' && oldSelf.?writeBehind.?file.?volume.orValue('EmptyDir') == 'EmptyDir' || has(self.writeBehind.file) && has(oldSelf.writeBehind.file) && self.writeBehind.file == oldSelf.writeBehind.file) : has(oldSelf.sinks) && oldSelf.sinks.exists(o, o.name == 'file' && (self.?writeBehind.?file.?volume.orValue('EmptyDir') == 'EmptyDir' && o.?file.?volume.orValue('EmptyDir') == 'EmptyDir' || has(self.writeBehind.file) && has(o.file) && dyn(self.writeBehind.file) == dyn(o.file))))",message="changed; the sink and its volume belong to the running pods and cannot be exchanged; keep it as it was, or use spec.sinks, which can be given sinks while the grid runs"
// +kubebuilder:validation:XValidation:optionalOldSelf=true,fieldPath=".security",rule="self.?security.?tls.hasValue() || self.?security.?insecure.orValue('Refuse') == 'Accept' || oldSelf.hasValue() && !oldSelf.?security.?tls.hasValue() && oldSelf.?security.?insecure.orValue('Refuse') != 'Accept'",message="without spec.security.tls every program that reaches the data port may submit, read and replace orders, and no client is asked who it is; set tls: {} (the operator then keeps the certificates), or write insecure: Accept where that is meant, as on a laptop or in a lab"
// +kubebuilder:validation:XValidation:fieldPath=".security",rule="self.?security.?tls.hasValue() || !oldSelf.?security.?tls.hasValue()",message="tls was taken from a running grid, whose pods dial each other with it; put it back, and set insecure: Accept beside it to let clients in without, or create a second OrderGrid without it and move the traffic"
// +kubebuilder:validation:XValidation:fieldPath=".security.networkPolicy",rule="!self.?security.?tls.hasValue() || self.?security.?insecure.orValue('Refuse') == 'Accept' || self.?security.?networkPolicy.?type.hasValue() || oldSelf.?security.?tls.hasValue() && oldSelf.?security.?insecure.orValue('Refuse') != 'Accept'",message="type is missing: the default changes from None to Restricted when clients need TLS, which would cut off those outside the grid's namespace; set type to Restricted with the clients that may connect, or to None, with the same change"
// +kubebuilder:validation:XValidation:fieldPath=".shards",rule="self.shards >= oldSelf.shards || self.?retention.?policy.orValue('KeepAll') != 'FreeDownstream' || self.?writeBehind.?file.?volume.orValue('EmptyDir') == 'PersistentVolumeClaim' && self.writeBehind.file.?whenDeleted.orValue('Retain') == 'Retain' || has(self.sinks) && self.sinks.exists(s, s.type != 'File' || s.?file.?volume.orValue('EmptyDir') == 'PersistentVolumeClaim' && s.file.?whenDeleted.orValue('Retain') == 'Retain')",messageExpression="'%d is fewer than %d, and with retention.policy FreeDownstream orders that were freed are in the files of sinks only, which go with the pods of the shards that are removed; keep %d, or create a second OrderGrid with a sink whose file.volume is PersistentVolumeClaim and file.whenDeleted Retain and move the traffic'.format([self.shards, oldSelf.shards, oldSelf.shards])"
// +kubebuilder:validation:XValidation:fieldPath=".shards",rule="self.shards <= self.partitions",messageExpression="'%d shards for %d partitions, so some would have none; give at most %d, or create a grid with more partitions'.format([self.shards, self.partitions, self.partitions])"
// +kubebuilder:validation:XValidation:fieldPath=".restoreFrom",rule="!has(self.restoreFrom) || has(oldSelf.restoreFrom)",message="a grid is restored when it is created, and this one runs; create another OrderGrid with restoreFrom"
// +kubebuilder:validation:XValidation:fieldPath=".restoreFrom",rule="!has(self.restoreFrom) || !has(self.restoreFrom.mode) || self.restoreFrom.mode != 'Copy' || !has(self.sinks) || !self.sinks.exists(s, has(s.archive) && (has(s.archive.claimName) && has(self.restoreFrom.claimName) && s.archive.claimName == self.restoreFrom.claimName || has(s.archive.bucket) && has(self.restoreFrom.bucket) && s.archive.bucket.name == self.restoreFrom.bucket.name && has(s.archive.bucket.prefix) == has(self.restoreFrom.bucket.prefix) && (!has(s.archive.bucket.prefix) || s.archive.bucket.prefix == self.restoreFrom.bucket.prefix)))",message="mode Copy leaves the archive to the grid that writes it, and a sink of this grid would write there too; give the sink another place, or set mode to TakeOver"
// +kubebuilder:validation:XValidation:fieldPath=".site",rule="has(self.site) == has(oldSelf.site) || (has(self.site) ? self.site.role : oldSelf.site.role) == 'Active'",message="a grid is a standby from its creation, or never was one; put it back as it was, or create another OrderGrid. kubectl ordergrid promote and demote change the role of a running grid"
// +kubebuilder:validation:XValidation:fieldPath=".site",rule="!has(self.site) || self.site.role != 'Standby' || !has(self.restoreFrom)",message="role is Standby, and restoreFrom is set: a standby gets its log from the other site, not from an archive; leave one of them out"
// +kubebuilder:validation:XValidation:fieldPath=".externalAccess",rule="!has(self.externalAccess) || self.?security.?tls.hasValue()",message="needs spec.security.tls: orders and who may send them would travel outside the cluster in plain text; set tls, or remove externalAccess"
// +kubebuilder:validation:XValidation:fieldPath=".externalAccess",rule="!has(self.externalAccess) || self.shards <= 64",messageExpression="'%d shards are too many: the addresses of all pods stand in the record of each shard; give at most 64, or remove externalAccess'.format([self.shards])"
// +kubebuilder:validation:XValidation:fieldPath=".execution.mode",rule="(self.?execution.?mode.orValue('Store') == 'Match') == (oldSelf.?execution.?mode.orValue('Store') == 'Match')",messageExpression="'%s; the logs of the grid were begun with %s, and their entries mean nothing to the other mode; create a second OrderGrid with the mode you want and move the traffic'.format(self.?execution.?mode.orValue('Store') == 'Match' ? ['Match', 'Store'] : ['Store', 'Match'])"
// +kubebuilder:validation:XValidation:fieldPath=".sinks",rule="self.?execution.?mode.orValue('Store') != 'Match' || (!has(self.sinks) || self.sinks.all(s, s.type in ['External', 'Kafka', 'PostgreSQL'])) && self.?writeBehind.?sink.orValue('Hold') != 'File'",message="spec.execution.mode is Match, and sinks of types File, Archive and Bridge do not read what a grid that matches stores; use Kafka, PostgreSQL or External, and remove spec.writeBehind"
// +kubebuilder:validation:XValidation:fieldPath=".sinks",rule="self.?execution.?mode.orValue('Store') == 'Match' || !has(self.sinks) || self.sinks.all(s, s.?content.orValue('Orders') == 'Orders')",message="content is OrdersAndExecutions or Executions, and a grid without spec.execution.mode Match has no executions; remove content"
// +kubebuilder:validation:XValidation:fieldPath=".sinks",rule="!has(self.sinks) || self.sinks.all(s, !has(s.bridge) || has(self.callbacks) && has(self.callbacks.post) && self.callbacks.post.exists(p, p.name == s.?bridge.?callback.orValue(p.name)))",message="a sink of type Bridge takes records of functions that spec.callbacks.post does not name; name them there, correct bridge.callback, or remove the sink"
// +kubebuilder:validation:XValidation:fieldPath=".views",rule="self.?execution.?mode.orValue('Store') != 'Match' || !has(self.views)",message="spec.execution.mode is Match, and views do not read what a grid that matches stores; remove spec.views and spec.orderIndex (kubectl ordergrid book shows the books)"
// +kubebuilder:validation:XValidation:fieldPath=".restoreFrom",rule="self.?execution.?mode.orValue('Store') != 'Match' || !has(self.restoreFrom)",message="spec.execution.mode is Match, and a grid that matches can be neither archived nor restored; remove restoreFrom"
// +kubebuilder:validation:XValidation:fieldPath=".site",rule="self.?execution.?mode.orValue('Store') != 'Match' || !has(self.site)",message="spec.execution.mode is Match, and a grid that matches has no standby in another site yet; remove site"
// +kubebuilder:validation:XValidation:fieldPath=".memory",rule="self.?execution.?mode.orValue('Store') != 'Match' || !isQuantity(string(self.memory)) || quantity(string(self.memory)).compareTo(quantity('0').add(self.partitions * 16777216)) >= 0",messageExpression="'%s is too little for %d partitions that match: a quarter of it is for books, 4Mi of each partition at least; give %dMi or more, or create the grid with fewer partitions'.format([self.memory, self.partitions, self.partitions * 16])"
// +kubebuilder:validation:XValidation:fieldPath=".partitionBy",rule="(self.?execution.?mode.orValue('Store') == 'Match') == (self.partitionBy == 'Symbol')",messageExpression="self.partitionBy == 'Symbol' ? 'Symbol, and spec.execution.mode is Store: only a grid that matches spreads orders by their symbol; remove partitionBy, or set execution.mode to Match' : '%s, and spec.execution.mode is Match: the orders of a symbol have to meet in one partition; set partitionBy to Symbol'.format([self.partitionBy])"
// +kubebuilder:validation:XValidation:fieldPath=".journal",rule="has(self.journal) == has(oldSelf.journal) && (!has(self.journal) || self.journal == oldSelf.journal)",message="changed; the PersistentVolumeClaims belong to the running pods, and either all copies have a journal or none; keep it as it was, or create a second OrderGrid and move the traffic"
// +kubebuilder:validation:XValidation:fieldPath=".regions",rule="self.?execution.?mode.orValue('Store') != 'Match' || !has(self.regions)",message="spec.execution.mode is Match, and a grid that matches has no regions; remove regions"
// +kubebuilder:validation:XValidation:fieldPath=".callbacks",rule="!has(self.callbacks) || !has(self.callbacks.compute) || has(self.regions)",message="compute is set, and spec.regions is not: functions of kind Compute are called with keys of regions; set spec.regions, for example to {gridRegions: [{name: positions}]} with a GridRegion of that name, or remove compute"
// +kubebuilder:validation:XValidation:fieldPath=".regions",rule="!has(oldSelf.regions) || has(self.regions)",message="removed from a running grid, whose logs have regions that would take memory nothing has planned for; put it back. gridRegions may be emptied, and memory lowered"
// +kubebuilder:validation:XValidation:fieldPath=".regions",rule="!has(self.regions) || !isQuantity(string(self.regions.memory)) || !isQuantity(string(self.memory)) || quantity(string(self.regions.memory)).compareTo(quantity(string(self.memory))) <= 0",messageExpression="'memory: %s is more than the %s of spec.memory; give at most that'.format([self.regions.memory, self.memory])"
// +kubebuilder:validation:XValidation:fieldPath=".regions",rule="!has(self.regions) || !isQuantity(string(self.regions.memory)) || quantity(string(self.regions.memory)).compareTo(quantity('0').add(self.partitions * 131072)) >= 0",messageExpression="'memory: %s is too little for %d partitions; give at least 128Ki for each, %dKi'.format([self.regions.memory, self.partitions, self.partitions * 128])"
// +kubebuilder:validation:XValidation:fieldPath=".resources",rule="!has(self.regions) || !isQuantity(string(self.regions.memory)) || !has(self.resources) || !has(self.resources.limits) || !('memory' in self.resources.limits) || quantity(string(self.resources.limits['memory'])).compareTo(quantity(string(self.memory)).add(quantity(string(self.regions.memory))).add(quantity(has(self.views) ? string(self.views.memory) : '0')).add(quantity('256Mi'))) >= 0",messageExpression="'limits.memory: %s leaves less than 256Mi beside spec.memory, spec.views.memory and the %s of spec.regions.memory; raise the limit, lower one of them, or leave the limit out'.format([self.resources.limits['memory'], self.regions.memory])"
type OrderGridSpec struct {
	// shards is the number of groups of grid nodes; the partitions are spread over them. 1 to 256, no more than partitions, default 1.
	// It may change while the grid runs: partitions move to the shards that are added, and from those that go, with their
	// orders, while orders flow.
	// +optional
	// +default=1
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 256",messageExpression="'%s is out of range; allowed are 1 to 256'.format([self])"
	Shards int32 `json:"shards,omitempty"`

	// partitions is the number of partitions that the orders of the grid are spread over by the hash of their key, and that
	// the shards share. 1 to 1024, default 8. It never changes, since an order's partition depends on it; a grid that will
	// grow needs several for each shard it may have in the future.
	// +optional
	// +default=8
	// +kubebuilder:default=8
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 1024",messageExpression="'%s is out of range; allowed are 1 to 1024'.format([self])"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",messageExpression="'%s differs from %d: the partition of every order depends on it; create a second grid with the number you want'.format([self, oldSelf])"
	Partitions int32 `json:"partitions,omitempty"`

	// replicas is the number of copies of every order, the primary's included, each on a grid node of its own.
	// 1 to 3, default 2. It may change while orders flow; going down to 1 needs singleCopy Accept.
	// +optional
	// +default=2
	// +kubebuilder:default=2
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 3",messageExpression="'%s is out of range; allowed are 1 (no copy), 2 and 3'.format([self])"
	Replicas int32 `json:"replicas,omitempty"`

	// singleCopy controls whether a running grid may be taken down to replicas: 1, after which the orders of a pod that ends
	// are lost with it: Refuse (default) or Accept. Not needed for a grid created with replicas: 1.
	// +optional
	// +default="Refuse"
	// +kubebuilder:default=Refuse
	SingleCopy SingleCopyPolicy `json:"singleCopy,omitempty"`

	// minInSync is the number of copies below which orders are refused. 1, the default, keeps serving from the last
	// copy.
	// +optional
	// +default=1
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1",messageExpression="'%s is out of range; allowed are 1 to spec.replicas'.format([self])"
	MinInSync int32 `json:"minInSync,omitempty"`

	// partitionBy is the field of an order whose hash picks the partition: ClOrdID (FIX tag 11, default), or Symbol (tag 55) in
	// a grid that matches.
	// +optional
	// +default="ClOrdID"
	// +kubebuilder:default=ClOrdID
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",messageExpression="'%s differs from %s: orders already stored would no longer be found; keep %s'.format([self, oldSelf, oldSelf])"
	PartitionBy PartitionKey `json:"partitionBy,omitempty"`

	// memory is what each grid node may use for orders; a full node refuses orders and drops none.
	// An order takes its FIX message plus about 96 bytes. At least 64Mi, default 1Gi.
	// +optional
	// +kubebuilder:default="1Gi"
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",messageExpression="'%s is not an amount; write it as 512Mi or 2Gi'.format([self])"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('64Mi')) >= 0",messageExpression="'%s is too little for a grid node; give at least 64Mi'.format([self])"
	Memory resource.Quantity `json:"memory,omitempty,omitzero"`

	// prefault is how much memory is faulted in before a grid node serves, so that no order waits for
	// it. It takes up to 2 s per GiB at the start of a pod on a virtual machine. 0 to memory; default 256Mi, or
	// memory if that is less, and 0 where the pod requests less than memory.
	// +optional
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('0')) >= 0",messageExpression="'%s is not an amount; write it as 0, 512Mi or 2Gi'.format([self])"
	Prefault *resource.Quantity `json:"prefault,omitempty"`

	// sinks receive committed orders, each at its own pace with a position in the log. An order is freed, and a
	// shard removed, only once every one of them holds it. At most 8; none: orders are held in memory. Those on an
	// EmptyDir and those of another type than File may be added and removed while the grid runs, except the one called file.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Sinks []SinkSpec `json:"sinks,omitempty"`

	// views keep the orders in columns in memory, which clients ask questions of. Without them questions are refused. They may
	// be set, changed and removed while the grid runs: pods are replaced one after the other.
	// +optional
	Views *ViewsSpec `json:"views,omitempty"`

	// orderIndex has further tags that views have a column for, and find rows by without a scan. It needs views. At most 16.
	// +optional
	// +listType=map
	// +listMapKey=tag
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(x, !has(x.name) || self.exists_one(y, has(y.name) && y.name == x.name))",message="two columns have one name; give each tag a name of its own, or none"
	OrderIndex []OrderIndex `json:"orderIndex,omitempty"`

	// restoreFrom is the archive that the grid begins with. It is set when the grid is created, and may be removed once
	// status.restore.completionTime is set.
	// +optional
	RestoreFrom *RestoreSpec `json:"restoreFrom,omitempty"`

	// site makes the grid one of a pair of sites: a standby, which holds the log of a grid in another cluster. It is set when
	// the grid is created. Without it the grid makes its entries itself.
	// +optional
	Site *GridSiteSpec `json:"site,omitempty"`

	// execution is what the grid does with orders beside keeping them. Default: nothing.
	// +optional
	Execution *ExecutionSpec `json:"execution,omitempty"`

	// riskProfile names the limits that orders are checked against. Default: none. Where it is removed, the limits that are in
	// force stay: name a RiskProfile with an empty spec to lift them.
	// +optional
	RiskProfile *RiskProfileReference `json:"riskProfile,omitempty"`

	// regions are keyed objects that the grid keeps beside orders. They may be set while the grid runs, and are not removed:
	// what is in the logs keeps its memory. Not in a grid that matches.
	// +optional
	Regions *RegionsSpec `json:"regions,omitempty"`

	// callbacks are functions of users, as WebAssembly, that the grid calls.
	// +optional
	Callbacks *CallbacksSpec `json:"callbacks,omitempty"`

	// journal keeps the log of every grid node on a disk, too: an order is acknowledged when it is on the disk of every copy,
	// and a grid that lost its power as a whole comes back with it. It is set when the grid is created. Without it orders are in
	// memory only.
	// +optional
	Journal *JournalSpec `json:"journal,omitempty"`

	// writeBehind is deprecated: use sinks. A grid that has it continues to work, and may change to sinks while it runs.
	// +optional
	WriteBehind WriteBehindSpec `json:"writeBehind,omitempty,omitzero"`

	// retention is how orders that are downstream are handled when a grid node's memory fills up.
	// +optional
	// +kubebuilder:default={policy: "KeepAll", highWatermarkPercent: 80}
	Retention RetentionSpec `json:"retention,omitempty,omitzero"`

	// timing of failure detection. The defaults fit a data-centre network.
	// +optional
	// +kubebuilder:default={beaconInterval: "20ms", lease: "200ms", grace: "300ms", claimDelay: "10s", handOverDelay: "5s", drainTimeout: "20s"}
	Timing TimingSpec `json:"timing,omitempty,omitzero"`

	// replication bounds the cost of copying for a serving grid node.
	// +optional
	// +kubebuilder:default={learnerRate: "256Mi"}
	Replication ReplicationSpec `json:"replication,omitempty,omitzero"`

	// placement selects Kubernetes nodes and processors for grid nodes.
	// +optional
	// +kubebuilder:default={spread: "Required", shardSpread: "Preferred"}
	Placement GridPlacement `json:"placement,omitempty,omitzero"`

	// fabric is a second network that orders and their copies travel on. Without it they use the pod network. It cannot be
	// added to a running grid, removed, or replaced by another network.
	// +optional
	Fabric *FabricSpec `json:"fabric,omitempty"`

	// updateStrategy is how a change that needs new pods is rolled out.
	// +optional
	// +kubebuilder:default={type: "RollingUpdate", maxUnavailableShards: 1, minReady: "10s", progressDeadline: "10m", surge: 1, withoutRoom: "Wait"}
	UpdateStrategy UpdateStrategySpec `json:"updateStrategy,omitempty,omitzero"`

	// rebalance bounds how many partitions move between shards at a time, how fast, and when.
	// +optional
	// +kubebuilder:default={maxConcurrent: 2}
	Rebalance *RebalanceSpec `json:"rebalance,omitempty"`

	// nodeFailure is how a pod on a lost Kubernetes node is handled.
	// +optional
	// +kubebuilder:default={policy: "ReplacePods", podReplaceAfter: "30s"}
	NodeFailure NodeFailureSpec `json:"nodeFailure,omitempty,omitzero"`

	// externalAccess admits clients outside the cluster, with an address for every pod. It needs security.tls. Without it
	// no external addresses are published.
	// +optional
	ExternalAccess *ExternalAccessSpec `json:"externalAccess,omitempty"`

	// security controls access to the grid. A new grid needs tls, or insecure: Accept.
	// +optional
	Security SecuritySpec `json:"security,omitempty,omitzero"`

	// image of the grid node. Default: the one the operator was installed with.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// imagePullPolicy of the grid node's container. Default: as Kubernetes does by tag.
	// +optional
	// +kubebuilder:validation:Enum=Always;Never;IfNotPresent
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// resources of the grid node's container. The memory request and limit default to spec.memory plus a quarter,
	// at least 256Mi more; there is no default CPU limit, because throttling shows up as latency.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// podTemplate is applied to the pod the operator builds, as a strategic merge patch: the form of a
	// v1 PodTemplateSpec. Fields that would break the grid are refused with condition Stalled, reason PodTemplateInvalid; fields
	// beyond a restricted pod that an administrator does not allow, with reason PodTemplateNotAllowed.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	PodTemplate *runtime.RawExtension `json:"podTemplate,omitempty"`
}

// SingleCopyPolicy selects whether a running grid may go down to one copy of every order.
//
// +kubebuilder:validation:Enum=Refuse;Accept
type SingleCopyPolicy string

const (
	// SingleCopyRefuse keeps at least two copies.
	SingleCopyRefuse SingleCopyPolicy = "Refuse"
	// SingleCopyAccept allows orders to be lost with a pod that ends.
	SingleCopyAccept SingleCopyPolicy = "Accept"
)

// PartitionKey names a field of an order.
//
// +kubebuilder:validation:Enum=ClOrdID;Symbol
type PartitionKey string

const (
	// PartitionByClOrdID spreads orders by FIX tag 11.
	PartitionByClOrdID PartitionKey = "ClOrdID"
	// PartitionBySymbol spreads orders by FIX tag 55: those of a symbol meet in one partition.
	PartitionBySymbol PartitionKey = "Symbol"
)

// RetentionSpec is how orders that are downstream are handled when a grid node's memory fills up.
type RetentionSpec struct {
	// policy is KeepAll (every order stays in memory, a full grid refuses new ones) or FreeDownstream (above the high
	// watermark the oldest orders that every sink holds are freed). Default KeepAll.
	// +optional
	// +default="KeepAll"
	// +kubebuilder:default=KeepAll
	Policy RetentionPolicy `json:"policy,omitempty"`

	// highWatermarkPercent is the part of spec.memory beyond which FreeDownstream frees, a tenth of spec.memory at a
	// time. 20 to 95, default 80.
	// +optional
	// +default=80
	// +kubebuilder:default=80
	// +kubebuilder:validation:XValidation:rule="self >= 20 && self <= 95",messageExpression="'%s is out of range; allowed are 20 to 95, in percent of spec.memory'.format([self])"
	HighWatermarkPercent int32 `json:"highWatermarkPercent,omitempty"`
}

// RetentionPolicy names how orders that are downstream are handled.
//
// +kubebuilder:validation:Enum=KeepAll;FreeDownstream
type RetentionPolicy string

const (
	// RetentionKeepAll keeps every order in memory.
	RetentionKeepAll RetentionPolicy = "KeepAll"
	// RetentionFreeDownstream frees what every sink holds.
	RetentionFreeDownstream RetentionPolicy = "FreeDownstream"
)

// ReplicationSpec bounds the cost of copying for a serving grid node.
type ReplicationSpec struct {
	// learnerRate is how many bytes a second a grid node sends at most to pods that catch up, all of them together. A lower rate
	// disturbs orders less but leaves the grid without a copy for longer. 1Mi to 16Gi, default 256Mi.
	// +optional
	// +kubebuilder:default="256Mi"
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self))",messageExpression="'%s is not an amount; write it as 512Mi or 2Gi'.format([self])"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('1Mi')) >= 0 && quantity(string(self)).compareTo(quantity('16Gi')) <= 0",messageExpression="'%s is not a rate from 1Mi to 16Gi bytes a second; write it as 64Mi'.format([self])"
	LearnerRate resource.Quantity `json:"learnerRate,omitempty,omitzero"`
}

// OrderGrid is a grid of order stores: shards of replicated, in-memory, totally ordered logs of FIX orders.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.shards,statuspath=.status.shards,selectorpath=.status.selector
// +kubebuilder:resource:shortName=og,categories=ordergrid-all
// +kubebuilder:printcolumn:name="Shards",type=integer,JSONPath=".spec.shards"
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=".status.readyShards"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=".spec.replicas"
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=".status.conditions[?(@.type=='Available')].status"
// +kubebuilder:printcolumn:name="Accepting",type=string,JSONPath=".status.conditions[?(@.type=='AcceptingOrders')].status"
// +kubebuilder:printcolumn:name="Redundant",type=string,JSONPath=".status.conditions[?(@.type=='Redundant')].status"
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=".status.endpoint"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Memory",type=string,priority=1,JSONPath=".spec.memory"
// +kubebuilder:printcolumn:name="Site",type=string,priority=1,JSONPath=".status.site.role"
// +kubebuilder:printcolumn:name="Sink",type=string,priority=1,JSONPath=".status.sinkNames"
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=".status.conditions[?(@.type=='Available')].message"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$')",messageExpression="'metadata.name: %s cannot begin the names of the pods and Services of its shards; use at most 40 lowercase letters, digits and hyphens, beginning with a letter and not ending with a hyphen'.format([self.metadata.name])"
// +kubebuilder:validation:XValidation:fieldPath=".spec.sinks",rule="!has(self.spec.sinks) || self.spec.sinks.all(n, !(has(oldSelf.status) && has(oldSelf.status.removedSinks) && n.name in oldSelf.status.removedSinks) || has(oldSelf.spec.sinks) && oldSelf.spec.sinks.exists(o, o.name == n.name))",messageExpression="'the grid had a sink of one of these names, %s, whose place in the logs its nodes let go of (status.removedSinks); use another name'.format([oldSelf.status.removedSinks])"
// +kubebuilder:validation:XValidation:fieldPath=".spec.sinks",rule="(has(self.spec.sinks) ? size(self.spec.sinks) : 0) <= (has(oldSelf.spec.sinks) ? size(oldSelf.spec.sinks) : 0) || (has(self.spec.sinks) ? size(self.spec.sinks) : 0) + (has(oldSelf.status) && has(oldSelf.status.removedSinks) ? size(oldSelf.status.removedSinks) : 0) <= 16",messageExpression="'%d sinks, and the nodes have not let go of %d that were removed; together they may be 16: wait until status.removedSinks is shorter'.format([size(self.spec.sinks), size(oldSelf.status.removedSinks)])"
// +kubebuilder:validation:XValidation:fieldPath=".spec.restoreFrom",rule="has(self.spec.restoreFrom) || !has(oldSelf.spec.restoreFrom) || has(oldSelf.status) && has(oldSelf.status.restore) && has(oldSelf.status.restore.completionTime)",message="removed, and not every partition is restored: those that are not would begin empty; put it back until status.restore.completionTime is set, or delete the OrderGrid"
type OrderGrid struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state; every field has a default.
	// +required
	Spec OrderGridSpec `json:"spec"`

	// status is what the operator observes.
	// +optional
	Status OrderGridStatus `json:"status,omitempty,omitzero"`
}

// OrderGridList is a list of OrderGrids.
//
// +kubebuilder:object:root=true
type OrderGridList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []OrderGrid `json:"items"`
}
