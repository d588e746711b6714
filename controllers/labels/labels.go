// Package labels holds the recommended labels that every object of the operator carries.
package labels

// Keys recommended by Kubernetes.
const (
	Name      = "app.kubernetes.io/name"
	Component = "app.kubernetes.io/component"
	Instance  = "app.kubernetes.io/instance"
	ManagedBy = "app.kubernetes.io/managed-by"
)

// Components of a grid.
const (
	GridNode = "grid-node"
	Probe    = "probe"
	Drill    = "drill"
	Sink     = "sink"
	Link     = "link"
	Gateway  = "gateway"
	SinkJob  = "sink-job"
	Function = "function"
	// RestoreJob reads the archive that a grid begins with.
	RestoreJob = "restore-job"
)

// Common returns the labels of one instance of a component, as a map of the caller's own.
func Common(component, instance string) map[string]string {
	return map[string]string{Name: "ordergrid", Component: component, Instance: instance, ManagedBy: "ordergrid-operator"}
}
