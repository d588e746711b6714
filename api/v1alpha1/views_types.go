package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// ViewCopies selects which copies of a partition keep a view of its orders.
//
// +kubebuilder:validation:Enum=All;Backup
type ViewCopies string

const (
	// ViewsOnAll keeps a view with every copy.
	ViewsOnAll ViewCopies = "All"
	// ViewsOnBackups keeps none with a primary while another copy is in sync.
	ViewsOnBackups ViewCopies = "Backup"
)

// ViewsSpec keeps views of the orders in memory, which clients ask questions of.
type ViewsSpec struct {
	// copies is All (every copy of a partition keeps a view; default) or Backup (a primary keeps none while another copy is
	// in sync: orders cost it nothing, and questions are answered by backups).
	// +optional
	// +default="All"
	// +kubebuilder:default=All
	Copies ViewCopies `json:"copies,omitempty"`

	// memory of each grid node for views, beside spec.memory. A view of 1,048,576 rows takes about 90Mi, and 8Mi to 16Mi more for
	// each of orderIndex; a grid node has one for each of its partitions. A partition that finds no room has none. At least
	// 64Mi, at most spec.memory, default 1Gi.
	// +optional
	// +kubebuilder:default="1Gi"
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('64Mi')) >= 0",messageExpression="'%s is too little for a view, or no amount; give at least 64Mi'.format([self])"
	Memory resource.Quantity `json:"memory,omitempty,omitzero"`

	// rows is how many entries of a partition are in its view at a time. With retention KeepAll the view ends there, and
	// questions about later orders are refused. 65536 to 268435456, default 1048576.
	// +optional
	// +default=1048576
	// +kubebuilder:default=1048576
	// +kubebuilder:validation:XValidation:rule="self >= 65536 && self <= 268435456",messageExpression="'%s is out of range; allowed are 65536 to 268435456'.format([self])"
	Rows int32 `json:"rows,omitempty"`

	// values is how many distinct texts a column may have, such as symbols, or accounts. 1024 to 16777216, default 65536.
	// +optional
	// +default=65536
	// +kubebuilder:default=65536
	// +kubebuilder:validation:XValidation:rule="self >= 1024 && self <= 16777216",messageExpression="'%s is out of range; allowed are 1024 to 16777216'.format([self])"
	Values int32 `json:"values,omitempty"`
}

// OrderIndexType is the type of the values of a tag.
//
// +kubebuilder:validation:Enum=Text;Decimal;Time
type OrderIndexType string

const (
	// OrderIndexText is found by equality without a scan.
	OrderIndexText OrderIndexType = "Text"
	// OrderIndexDecimal is found by ranges without a scan.
	OrderIndexDecimal OrderIndexType = "Decimal"
	// OrderIndexTime is a UTCTimestamp, found by ranges without a scan.
	OrderIndexTime OrderIndexType = "Time"
)

// OrderIndex is a further column of views.
type OrderIndex struct {
	// tag is a FIX tag that no view has already.
	// +required
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self < 1073741824 && !(self in [1, 11, 35, 38, 40, 41, 44, 54, 55, 59, 60])",messageExpression="'%s is no tag for an index; allowed are 1 to 1073741823, but for 1, 11, 35, 38, 40, 41, 44, 54, 55, 59 and 60, which every view has'.format([self])"
	Tag int32 `json:"tag"`

	// type of its values: Text (equality is found without a scan; for few distinct values), Decimal or Time (ranges are).
	// +required
	Type OrderIndexType `json:"type"`

	// name of the column in questions and answers. Default: Tag and the number, such as Tag5001.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9_]*$') && !self.matches('^Tag[0-9]+$') && !(self in ['Seq', 'ClOrdID', 'OrigClOrdID', 'Symbol', 'Side', 'Account', 'Price', 'OrderQty', 'OrdType', 'TimeInForce', 'TransactTime', 'Session', 'Received', 'MsgType', 'State'])",messageExpression="'%s is no name for a column; use letters, digits and _, beginning with a letter, and no name that every view has'.format([self])"
	Name string `json:"name,omitempty"`
}
