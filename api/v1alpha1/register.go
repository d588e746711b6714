package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every kind in this package.
const GroupName = "ordergrid.dev"

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

var (
	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers the kinds of this package, for client-go and controller-runtime alike.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&OrderGrid{}, &OrderGridList{},
		&GridPartition{}, &GridPartitionList{},
		&OrderProbe{}, &OrderProbeList{},
		&FailoverDrill{}, &FailoverDrillList{},
		&GridLink{}, &GridLinkList{},
		&OrderGateway{}, &OrderGatewayList{},
		&InstrumentSet{}, &InstrumentSetList{},
		&GridFunction{}, &GridFunctionList{},
		&RiskProfile{}, &RiskProfileList{},
		&GridRegion{}, &GridRegionList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
