package gridfunction

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/workload"
)

// Reasons of the conditions.
const (
	reasonLoadable      = "Loadable"
	reasonFileNotFound  = "FileNotFound"
	reasonDigestDiffers = "DigestDiffers"
	reasonTooLarge      = "TooLarge"
	reasonModuleRefused = "ModuleRefused"
	reasonNotGranted    = "NotGranted"
	reasonFetchFailed   = "FetchFailed"
	reasonNotAllowed    = "SourceNotAllowed"
	reasonNoModule      = "NoModule"
	reasonInUse         = "InUse"
	reasonUnused        = "Unused"
)

// reports is how the conditions are reported: that a function is in use is no trouble, and that it is not neither.
var reports = workload.Kind{
	Good: []workload.Good{
		{Condition: api.ConditionValid, Status: metav1.ConditionTrue},
		{Condition: api.ConditionInUse, Status: metav1.ConditionTrue},
	},
	Quiet:   []string{reasonInUse, reasonUnused},
	Metrics: kindMetrics,
}

// valid is condition Valid for the result of a check.
func valid(spec *api.GridFunctionSpec, m *api.FunctionModuleStatus, p *Problem) metav1.Condition {
	if p != nil {
		return metav1.Condition{Type: api.ConditionValid, Status: metav1.ConditionFalse, Reason: p.Reason, Message: p.Text + ". Grids go on with what they were given"}
	}
	asks := "it asks for the whole message"
	switch {
	case spec.Kind == api.FunctionCompute:
		asks = "clients call it with a key of a region"
	case m.Asks == api.FunctionReadsTags && len(m.Tags) > 0:
		asks = "it asks for tags " + strings.Trim(fmt.Sprint(m.Tags), "[]")
	case m.Asks == api.FunctionReadsTags:
		asks = "it asks for no tag beside the fields that every function gets"
	}
	return metav1.Condition{Type: api.ConditionValid, Status: metav1.ConditionTrue, Reason: reasonLoadable,
		Message: fmt.Sprintf("the module of %d bytes is loaded as kind %s; %s", m.Bytes, spec.Kind, asks)}
}

// inUse is condition InUse.
func inUse(grids []api.FunctionGrid) metav1.Condition {
	if len(grids) == 0 {
		return metav1.Condition{Type: api.ConditionInUse, Status: metav1.ConditionFalse, Reason: reasonUnused, Message: "no OrderGrid of the namespace names the function or calls it"}
	}
	var names []string
	for i := range grids {
		names = append(names, grids[i].Name)
	}
	const few = 4
	more := ""
	if n := len(names) - few; n > 0 {
		names, more = names[:few], fmt.Sprintf(" and %d more", n)
	}
	return metav1.Condition{Type: api.ConditionInUse, Status: metav1.ConditionTrue, Reason: reasonInUse,
		Message: fmt.Sprintf("OrderGrids call it, or are about to: %s%s. They keep what they were given if it is deleted", strings.Join(names, ", "), more)}
}
