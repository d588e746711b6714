package objects

// Keys recommended by Kubernetes.
const (
	LabelName      = "app.kubernetes.io/name"
	LabelComponent = "app.kubernetes.io/component"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelManagedBy = "app.kubernetes.io/managed-by"
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

// Labels returns the labels of one instance of a component, as a map of the caller's own.
func Labels(component, instance string) map[string]string {
	return map[string]string{LabelName: "ordergrid", LabelComponent: component, LabelInstance: instance, LabelManagedBy: "ordergrid-operator"}
}
