package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GridPartitionSpec identifies the partition. It is written by the operator only.
//
// +kubebuilder:validation:XValidation:fieldPath=".restore",rule="has(self.restore) == has(oldSelf.restore) && (!has(self.restore) || self.restore == oldSelf.restore)",message="changed; it is what the first claim of the record begins with and never changes: put it back, or delete the OrderGrid and create another one"
// +kubebuilder:validation:XValidation:fieldPath=".restore",rule="!has(self.restore) || !has(self.site) || self.site.role != 'Standby'",message="is set, and site.role is Standby: a standby gets its entries from the other site, not from an archive; leave one of them out"
// +kubebuilder:validation:XValidation:fieldPath=".maxInSync",rule="!has(self.maxInSync) || self.maxInSync >= self.replicas",messageExpression="'%d is fewer than spec.replicas %d, so the partition could never have its copies; set it to at least %d, or leave it out'.format([self.maxInSync, self.replicas, self.replicas])"
// +kubebuilder:validation:XValidation:fieldPath=".pods",rule="!has(self.pods) || size(self.pods) >= self.replicas",messageExpression="'%d pods for spec.replicas %d copies, so the partition could never have them; name at least %d, or leave pods out'.format([size(self.pods), self.replicas, self.replicas])"
type GridPartitionSpec struct {
	// gridRef names the OrderGrid in the same namespace that this partition belongs to.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",messageExpression="'%s differs from %s: a partition never changes its grid; create a new GridPartition'.format([self.name, oldSelf.name])"
	GridRef GridReference `json:"gridRef"`

	// partition is the number of the partition, from 0. An order belongs to the partition that its key's hash leaves when
	// divided by spec.partitions of the OrderGrid.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1023
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",messageExpression="'%s differs from %d: ids of orders are made from it; create a new GridPartition'.format([self, oldSelf])"
	Partition int32 `json:"partition"`

	// shard is the number of the shard, from 0, whose pods are to hold the partition. Another number moves the partition,
	// with all its orders and sessions, while orders flow; status.inSync has its copies.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=255
	Shard int32 `json:"shard"`

	// replicas is how many copies the partition should have, the primary's included.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3
	Replicas int32 `json:"replicas"`

	// minInSync is the number of in-sync copies below which the primary refuses orders.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3
	MinInSync int32 `json:"minInSync"`

	// maxInSync is the number of in-sync copies up to which the primary accepts pods, more than replicas while a copy is
	// being added. When more are in sync it removes the pod with the largest name, with the others in sync. Default
	// replicas. Nodes that know pods use that instead.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3
	MaxInSync int32 `json:"maxInSync,omitempty"`

	// pods are the names of the pods that are to hold a copy: replicas of them, or more while a copy is being added or pods
	// are replaced. The primary accepts copies on these pods only, and removes a copy on another pod when more than replicas
	// are in sync, so changing the list moves the partition, one copy after the other and the primary last; maxInSync is ignored
	// then. Without it every pod may hold a copy. The operator writes it.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Pods []string `json:"pods,omitempty"`

	// learnerRate is how many bytes a second the primary sends at most to pods that catch up with the partition, while it
	// moves with all its copies. 65536 to 17179869184; without it the nodes' own limit alone counts. The operator writes it.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == 0 || self >= 65536 && self <= 17179869184",messageExpression="'%d is not a rate from 65536 to 17179869184 bytes a second; leave it out for the limit of the nodes'.format([self])"
	LearnerRate int64 `json:"learnerRate,omitempty"`

	// preferredPod is the pod that should be primary. It claims a partition that never had a primary at once; the
	// other pods of the shard wait for spec.timing.claimDelay of the OrderGrid. Another primary hands over to it once its
	// process has been in sync for spec.timing.handOverDelay, so a change of this field moves the primary.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	PreferredPod string `json:"preferredPod"`

	// acceptDataLossEpoch is the epoch whose in-sync members have been given up: a process without the orders that
	// only they held may become primary, in a new lineage. It must be the present epoch when it is set, and has no effect
	// once the epoch has moved. 0: nothing is given up. The operator sets it from the annotation
	// ordergrid.dev/accept-data-loss and clears it again.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self >= 0",messageExpression="'%s is not an epoch; set it to status.epoch, or leave it out'.format([self])"
	AcceptDataLossEpoch int64 `json:"acceptDataLossEpoch,omitempty"`

	// reassertChangeID is the change id of the authoritative configuration although this record shows an
	// older one, because etcd was restored from a backup: the primary of that configuration writes it again. The
	// operator sets it from the annotation ordergrid.dev/reassert-configuration and clears it again.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ReassertChangeID string `json:"reassertChangeID,omitempty"`

	// site is the part of the partition in a pair of sites: the role that it begins with, and what an administrator decided
	// about it since.
	// +optional
	Site *PartitionSite `json:"site,omitempty"`

	// restore is the recovery point of an archive that the partition begins with: the first claim is made by a pod that has
	// loaded the archive up to it, at the next epoch and the next lineage. The operator writes it when it creates the record.
	// +optional
	Restore *PartitionRestore `json:"restore,omitempty"`

	// externalAddresses are where clients outside the cluster reach the grid's pods, those of all shards; grid nodes hand
	// them to such clients. In the record of partition 0 only.
	// +optional
	// +listType=map
	// +listMapKey=podName
	// +kubebuilder:validation:MaxItems=192
	ExternalAddresses []ExternalAddress `json:"externalAddresses,omitempty"`
}

// GridReference names an OrderGrid in the same namespace.
type GridReference struct {
	// name of the OrderGrid.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// GridPartitionStatus is the configuration record of the partition: the primary and the members with a complete copy.
//
// Only a current member of inSync changes it, with a PUT on the status subresource that carries the
// resourceVersion it read. The rules below refuse invalid transitions, also those of the operator.
//
// +kubebuilder:validation:XValidation:fieldPath=".epoch",rule="oldSelf.epoch == 0 || self.epoch == oldSelf.epoch || self.epoch == oldSelf.epoch + 1 || (self.epoch > oldSelf.epoch && oldSelf.epoch > 0 && (has(oldSelf.site) ? oldSelf.site.role : 'Active') == 'Standby' && (has(self.site) ? self.site.role : 'Active') == 'Active')",messageExpression="'epoch %s does not follow %s: every change of the configuration raises it by exactly 1; read the partition again from the API server, not from a cache, and propose %s'.format([self.epoch, oldSelf.epoch, oldSelf.epoch + 1])"
// +kubebuilder:validation:XValidation:fieldPath=".epoch",rule="self.epoch != oldSelf.epoch || (has(self.lineage) == has(oldSelf.lineage) && (!has(self.lineage) || self.lineage == oldSelf.lineage) && has(self.changeID) == has(oldSelf.changeID) && (!has(self.changeID) || self.changeID == oldSelf.changeID) && has(self.primary) == has(oldSelf.primary) && (!has(self.primary) || self.primary == oldSelf.primary) && has(self.inSync) == has(oldSelf.inSync) && (!has(self.inSync) || self.inSync == oldSelf.inSync) && (has(self.site) ? self.site.role : 'Active') == (has(oldSelf.site) ? oldSelf.site.role : 'Active') && (has(self.site) ? self.site.term : 0) == (has(oldSelf.site) ? oldSelf.site.term : 0))",messageExpression="'epoch %s is already taken by change %s: primary, inSync, lineage and changeID may change only together with the epoch; read the partition again and propose epoch %s'.format([self.epoch, has(oldSelf.changeID) ? oldSelf.changeID : 'none', oldSelf.epoch + 1])"
// +kubebuilder:validation:XValidation:fieldPath=".lineage",rule="oldSelf.epoch == 0 || (has(self.lineage) ? self.lineage : 0) == (has(oldSelf.lineage) ? oldSelf.lineage : 0) || (has(self.lineage) ? self.lineage : 0) == (has(oldSelf.lineage) ? oldSelf.lineage : 0) + 1 || ((has(self.lineage) ? self.lineage : 0) > (has(oldSelf.lineage) ? oldSelf.lineage : 0) && oldSelf.epoch > 0 && (has(oldSelf.site) ? oldSelf.site.role : 'Active') == 'Standby' && (has(self.site) ? self.site.role : 'Active') == 'Active')",messageExpression="'lineage %s does not follow %s: it never falls, and rises by 1 only when a loss of data was accepted; keep it as it was'.format([has(self.lineage) ? self.lineage : 0, has(oldSelf.lineage) ? oldSelf.lineage : 0])"
// +kubebuilder:validation:XValidation:fieldPath=".primary",rule="self.epoch == oldSelf.epoch || oldSelf.epoch == 0 || !has(self.primary) || (has(self.lineage) && has(oldSelf.lineage) && self.lineage == oldSelf.lineage + 1 && !((has(oldSelf.site) ? oldSelf.site.role : 'Active') == 'Standby' && (has(self.site) ? self.site.role : 'Active') == 'Active')) || (has(oldSelf.inSync) && oldSelf.inSync.exists(m, m.id == self.primary.id))",messageExpression="'primary %s was not in inSync %s of epoch %s: only an in-sync member holds every acknowledged order; let it join through the primary first, or accept the loss of data, which raises lineage'.format([self.primary.id, has(oldSelf.inSync) ? oldSelf.inSync.map(m, m.id) : [], oldSelf.epoch])"
// +kubebuilder:validation:XValidation:fieldPath=".primary",rule="self.epoch == 0 || has(self.primary)",messageExpression="'primary is missing at epoch %s: every epoch has exactly one primary; name it with id, podName, bootID and address'.format([self.epoch])"
// +kubebuilder:validation:XValidation:fieldPath=".primary",rule="self.epoch > 0 || !has(self.primary)",messageExpression="'primary %s at epoch 0, which means never claimed; propose epoch 1'.format([self.primary.id])"
// +kubebuilder:validation:XValidation:fieldPath=".lineage",rule="self.epoch == 0 || (has(self.lineage) && self.lineage >= 1)",messageExpression="'lineage %s at epoch %s: the first claim starts lineage 1; set lineage to 1'.format([has(self.lineage) ? self.lineage : 0, self.epoch])"
// +kubebuilder:validation:XValidation:fieldPath=".changeID",rule="self.epoch == 0 || has(self.changeID)",messageExpression="'changeID is missing at epoch %s: a proposer recognises its own change by it after a timeout; set it to a new random string with every proposal'.format([self.epoch])"
// +kubebuilder:validation:XValidation:fieldPath=".inSync",rule="!has(self.primary) || (has(self.inSync) && self.inSync.exists(m, m.id == self.primary.id && m.address == self.primary.address))",messageExpression="'inSync %s does not contain the primary %s@%s: the primary is always in sync; add it with the same id and address'.format([has(self.inSync) ? self.inSync.map(m, m.id + '@' + m.address) : [], self.primary.id, self.primary.address])"
// +kubebuilder:validation:XValidation:fieldPath=".inSync",rule="has(self.primary) || !has(self.inSync) || self.inSync.size() == 0",messageExpression="'inSync has %s members but there is no primary: name the primary, or leave inSync empty'.format([self.inSync.size()])"
// +kubebuilder:validation:XValidation:optionalOldSelf=true,fieldPath=".inSync",rule="(oldSelf.hasValue() && oldSelf.value().epoch > 0) || self.epoch == 0 || !has(self.inSync) || self.inSync.size() == 1",messageExpression="'inSync has %s members at the first claim, before any member can have joined; claim with the primary alone'.format([self.inSync.size()])"
// +kubebuilder:validation:XValidation:fieldPath=".inSyncCount",rule="!has(self.inSyncCount) || self.inSyncCount == (has(self.inSync) ? self.inSync.size() : 0)",messageExpression="'inSyncCount %s is not the %s members of inSync: set it to %s, or leave it out'.format([self.inSyncCount, has(self.inSync) ? self.inSync.size() : 0, has(self.inSync) ? self.inSync.size() : 0])"
// +kubebuilder:validation:XValidation:fieldPath=".site",rule="(has(self.site) ? self.site.term : 0) >= (has(oldSelf.site) ? oldSelf.site.term : 0)",messageExpression="'term %s is below %s: the term of a site never falls; read the partition again and propose %s'.format([(has(self.site) ? self.site.term : 0), (has(oldSelf.site) ? oldSelf.site.term : 0), (has(oldSelf.site) ? oldSelf.site.term : 0)])"
// +kubebuilder:validation:XValidation:fieldPath=".site",rule="(has(self.site) ? self.site.term : 0) <= (has(oldSelf.site) ? oldSelf.site.term : 0) || oldSelf.epoch == 0 || (has(self.site) ? self.site.role : 'Active') != (has(oldSelf.site) ? oldSelf.site.role : 'Active')",messageExpression="'term %s does not follow %s: it rises only together with the role of the site; keep it as it was'.format([(has(self.site) ? self.site.term : 0), (has(oldSelf.site) ? oldSelf.site.term : 0)])"
type GridPartitionStatus struct {
	// epoch rises by one with every change of the configuration. 0: no node has claimed the partition yet.
	// +required
	// +kubebuilder:validation:Minimum=0
	Epoch int64 `json:"epoch"`

	// lineage starts at 1 and rises only when a loss of data was accepted.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Lineage int64 `json:"lineage,omitempty"`

	// changeID is random per proposal; a proposer whose PUT timed out recognises its own change by it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ChangeID string `json:"changeID,omitempty"`

	// primary orders the partition's log and answers clients.
	// +optional
	Primary *Member `json:"primary,omitempty"`

	// inSync are the members that hold every acknowledged order, the primary included: up to three copies, and one more
	// while they move to other pods.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=4
	InSync []Member `json:"inSync,omitempty"`

	// inSyncCount is the length of inSync, which a table column cannot count by itself.
	// +optional
	// +kubebuilder:validation:Minimum=0
	InSyncCount int32 `json:"inSyncCount,omitempty"`

	// site is the part of the partition in a pair of sites; absent while it was never a standby.
	// +optional
	Site *PartitionSiteStatus `json:"site,omitempty"`

	// observedTime is when the proposer made the change, by the proposer's clock. Informational only.
	// +optional
	ObservedTime *metav1.Time `json:"observedTime,omitempty"`
}

// Member is one process that holds, or learns, a copy of a partition. A restarted process is another member.
//
// +kubebuilder:validation:XValidation:fieldPath=".id",rule="self.id == self.podName + '/' + self.bootID",messageExpression="'id %s is not podName/bootID: set it to %s/%s'.format([self.id, self.podName, self.bootID])"
type Member struct {
	// id is podName/bootID.
	// +required
	// +kubebuilder:validation:MinLength=18
	// +kubebuilder:validation:MaxLength=80
	ID string `json:"id"`

	// podName is the pod the process runs in.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	PodName string `json:"podName"`

	// bootID is 16 lowercase hexadecimal digits, drawn at random when the process starts. A pod's UID would
	// survive a restart of its container; the orders in memory would not.
	// +required
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{16}$`
	// +kubebuilder:validation:MinLength=16
	// +kubebuilder:validation:MaxLength=16
	BootID string `json:"bootID"`

	// address is where clients and peers reach the process: IP:port, an IPv6 address in brackets.
	// +required
	// +kubebuilder:validation:Pattern=`^([0-9]{1,3}(\.[0-9]{1,3}){3}|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}$`
	// +kubebuilder:validation:MaxLength=64
	Address string `json:"address"`
}

// GridPartition is the configuration record of one partition of an OrderGrid. The operator creates it, the
// grid nodes change its status by compare-and-swap, clients may read it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=gp,categories=ordergrid-all
// +kubebuilder:printcolumn:name="Grid",type=string,JSONPath=".spec.gridRef.name"
// +kubebuilder:printcolumn:name="Partition",type=integer,JSONPath=".spec.partition"
// +kubebuilder:printcolumn:name="Shard",type=integer,JSONPath=".spec.shard"
// +kubebuilder:printcolumn:name="Primary",type=string,JSONPath=".status.primary.podName"
// +kubebuilder:printcolumn:name="Epoch",type=integer,JSONPath=".status.epoch"
// +kubebuilder:printcolumn:name="InSync",type=integer,JSONPath=".status.inSyncCount"
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=".spec.replicas"
// +kubebuilder:printcolumn:name="Changed",type=date,JSONPath=".status.observedTime"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Address",type=string,priority=1,JSONPath=".status.primary.address"
// +kubebuilder:printcolumn:name="Lineage",type=integer,priority=1,JSONPath=".status.lineage"
// +kubebuilder:printcolumn:name="Preferred",type=string,priority=1,JSONPath=".spec.preferredPod"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || has(self.status)",message="status removed; the configuration of a partition is never forgotten, because acknowledged orders depend on it: send the status you read, with epoch raised by 1"
// +kubebuilder:validation:XValidation:fieldPath=".status.lineage",rule="!has(self.status) || !has(oldSelf.status) || oldSelf.status.epoch == 0 || (has(self.status.lineage) ? self.status.lineage : 0) <= (has(oldSelf.status.lineage) ? oldSelf.status.lineage : 0) || ((has(oldSelf.status.site) ? oldSelf.status.site.role : 'Active') == 'Standby' && (has(self.status.site) ? self.status.site.role : 'Active') == 'Active') || (has(self.spec.acceptDataLossEpoch) && self.spec.acceptDataLossEpoch == oldSelf.status.epoch) || (has(self.spec.reassertChangeID) && self.spec.reassertChangeID.size() > 0)",messageExpression="'lineage %s would give up what lineage %s holds without an accepted loss: spec.acceptDataLossEpoch is %s, not the epoch %s; keep the lineage, or accept the loss with the annotation ordergrid.dev/accept-data-loss=%s'.format([has(self.status.lineage) ? self.status.lineage : 0, has(oldSelf.status.lineage) ? oldSelf.status.lineage : 0, has(self.spec.acceptDataLossEpoch) ? self.spec.acceptDataLossEpoch : 0, oldSelf.status.epoch, oldSelf.status.epoch])"
// +kubebuilder:validation:XValidation:optionalOldSelf=true,fieldPath=".spec.acceptDataLossEpoch",rule="!has(self.spec.acceptDataLossEpoch) || self.spec.acceptDataLossEpoch <= 0 || (oldSelf.hasValue() && has(oldSelf.value().spec.acceptDataLossEpoch) && oldSelf.value().spec.acceptDataLossEpoch == self.spec.acceptDataLossEpoch) || (has(self.status) && self.status.epoch == self.spec.acceptDataLossEpoch)",messageExpression="'%s is not the present epoch %s: a loss is accepted neither in advance nor afterwards; read the partition again and set it to status.epoch'.format([self.spec.acceptDataLossEpoch, has(self.status) ? self.status.epoch : 0])"
// +kubebuilder:validation:XValidation:fieldPath=".status.site",rule="!has(self.status) || self.status.epoch == 0 || (has(oldSelf.status) && oldSelf.status.epoch > 0) || (has(self.status.site) ? self.status.site.role : 'Active') == (has(self.spec.site) ? self.spec.site.role : 'Active')",messageExpression="'role %s at the first claim, and spec.site.role is %s; claim it as %s'.format([(has(self.status.site) ? self.status.site.role : 'Active'), (has(self.spec.site) ? self.spec.site.role : 'Active'), (has(self.spec.site) ? self.spec.site.role : 'Active')])"
// +kubebuilder:validation:XValidation:fieldPath=".status.site",rule="!has(self.status) || (has(oldSelf.status) && oldSelf.status.epoch > 0) || (has(self.status.site) ? self.status.site.term : 0) == 0",messageExpression="'term %s at the first claim: no site can have been promoted yet; set term to 0'.format([(has(self.status.site) ? self.status.site.term : 0)])"
// +kubebuilder:validation:XValidation:fieldPath=".status.site",rule="!has(self.status) || !(has(oldSelf.status) && oldSelf.status.epoch > 0) || (has(self.status.site) ? self.status.site.role : 'Active') == (has(oldSelf.status) && has(oldSelf.status.site) ? oldSelf.status.site.role : 'Active') || (has(self.status.site) ? self.status.site.role : 'Active') == 'Active' || (has(self.status.site) ? self.status.site.term : 0) > (has(oldSelf.status) && has(oldSelf.status.site) ? oldSelf.status.site.term : 0) || (has(self.spec.site) && has(self.spec.site.demote) && self.spec.site.demote.term == (has(oldSelf.status) && has(oldSelf.status.site) ? oldSelf.status.site.term : 0)) || (has(self.spec.reassertChangeID) && self.spec.reassertChangeID.size() > 0)",messageExpression="'role Standby without a demotion: spec.site.demote does not name the term %s; keep the role, or demote the site'.format([(has(oldSelf.status) && has(oldSelf.status.site) ? oldSelf.status.site.term : 0)])"
// +kubebuilder:validation:XValidation:fieldPath=".status.site",rule="!has(self.status) || !(has(oldSelf.status) && oldSelf.status.epoch > 0) || (has(self.status.site) ? self.status.site.role : 'Active') == (has(oldSelf.status) && has(oldSelf.status.site) ? oldSelf.status.site.role : 'Active') || (has(self.status.site) ? self.status.site.role : 'Active') == 'Standby' || (has(self.spec.site) && has(self.spec.site.promote) && self.spec.site.promote.term > (has(oldSelf.status) && has(oldSelf.status.site) ? oldSelf.status.site.term : 0) && self.spec.site.promote.term == (has(self.status.site) ? self.status.site.term : 0)) || (has(self.spec.reassertChangeID) && self.spec.reassertChangeID.size() > 0)",messageExpression="'role Active in term %s without a promotion: spec.site.promote names term %s, and the site is in term %s; keep the role, or promote the site to a term above %s'.format([(has(self.status.site) ? self.status.site.term : 0), has(self.spec.site) && has(self.spec.site.promote) ? self.spec.site.promote.term : 0, (has(oldSelf.status) && has(oldSelf.status.site) ? oldSelf.status.site.term : 0), (has(oldSelf.status) && has(oldSelf.status.site) ? oldSelf.status.site.term : 0)])"
// +kubebuilder:validation:XValidation:optionalOldSelf=true,fieldPath=".status.epoch",rule="!has(self.status) || self.status.epoch == 0 || oldSelf.hasValue() && has(oldSelf.value().status) && oldSelf.value().status.epoch > 0 || self.status.epoch == (has(self.spec.restore) ? self.spec.restore.epoch + 1 : 1)",messageExpression="has(self.spec.restore) ? 'epoch %s at the first claim: the partition is restored from an archive of epoch %s; propose epoch %s'.format([self.status.epoch, self.spec.restore.epoch, self.spec.restore.epoch + 1]) : 'epoch %s at the first claim: the partition has no configuration yet; propose epoch 1'.format([self.status.epoch])"
// +kubebuilder:validation:XValidation:optionalOldSelf=true,fieldPath=".status.lineage",rule="!has(self.status) || self.status.epoch == 0 || !has(self.status.lineage) || self.status.lineage == 0 || oldSelf.hasValue() && has(oldSelf.value().status) && oldSelf.value().status.epoch > 0 || self.status.lineage == (has(self.spec.restore) ? self.spec.restore.lineage + 1 : 1)",messageExpression="has(self.spec.restore) ? 'lineage %s at the first claim: the partition is restored from an archive of lineage %s, and what that grid did behind it is given up; set lineage to %s'.format([self.status.lineage, self.spec.restore.lineage, self.spec.restore.lineage + 1]) : 'lineage %s at the first claim: nothing can have been lost yet; set lineage to 1'.format([self.status.lineage])"
type GridPartition struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec identifies the partition.
	// +required
	Spec GridPartitionSpec `json:"spec"`

	// status is absent until a grid node claims the partition.
	// +optional
	Status GridPartitionStatus `json:"status,omitzero"`
}

// GridPartitionList is a list of GridPartitions.
//
// +kubebuilder:object:root=true
type GridPartitionList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GridPartition `json:"items"`
}
