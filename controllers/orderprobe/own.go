package orderprobe

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/probe/pod"
	"github.com/ordergrid/ordergrid/probe/report"
)

// room is what a pod that starts grids of its own is given where nothing else is asked for.
type room struct {
	memory, storage string
	limit           time.Duration // of one scenario; of a suite without a budget suiteLimits times that
}

var rooms = map[api.ParameterSet]room{
	api.ParametersQuick:  {"2Gi", "2Gi", time.Hour},
	api.ParametersScaled: {"6Gi", "8Gi", 4 * time.Hour},
	api.ParametersExact:  {"24Gi", "64Gi", 48 * time.Hour},
}

const suiteLimits = 4

func roomOf(probe *api.OrderProbe) room {
	return rooms[cmp.Or(probe.Spec.Parameters, api.ParametersScaled)]
}

// ownLimit is when a run on grids of its own is ended. A budget says when no more scenario is begun.
func ownLimit(probe *api.OrderProbe) time.Duration {
	limit := roomOf(probe).limit
	switch {
	case probe.Spec.Budget != nil:
		limit = 2 * probe.Spec.Budget.Duration
	case probe.Spec.Scenario == api.ScenarioSuite:
		limit *= suiteLimits
	}
	return (limit + startupTime).Round(time.Second)
}

const (
	scratchVolume = "scratch"
	scratchMount  = "/tmp"
)

// addRoom gives the pod a place for files, which its root is not, and bounds what it takes of its node's disk. Processes of
// grids that are killed are reaped by the sandbox of the pod, whose process 1 the probe then is not.
func addRoom(probe *api.OrderProbe, spec *corev1.PodSpec) {
	r := roomOf(probe)
	size := resource.MustParse(r.storage)
	spec.ShareProcessNamespace = ptr.To(true)
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: scratchVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &size}}})
	c := &spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: scratchVolume, MountPath: scratchMount})
	if probe.Spec.Resources == nil {
		c.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")
		c.Resources.Requests[corev1.ResourceMemory] = resource.MustParse(r.memory)
		c.Resources.Requests[corev1.ResourceEphemeralStorage] = resource.MustParse("256Mi")
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: size}
	}
}

// ownArgs is the command line of a pod that starts grids of its own.
func ownArgs(probe *api.OrderProbe) []string {
	list := []string{"pod", "--probe", probe.Name, "--index", "$(PROBE_INDEX)", "--namespace", probe.Namespace,
		"--scenario", string(probe.Spec.Scenario), "--" + strings.ToLower(string(cmp.Or(probe.Spec.Parameters, api.ParametersScaled)))}
	if probe.Spec.Budget != nil {
		list = append(list, "--budget", probe.Spec.Budget.Duration.String())
	}
	return list
}

// ownResult is what came of a run on grids of its own.
type ownResult struct {
	outcome *report.Outcome // of one scenario
	suite   *report.Suite   // else
	files   map[string]string
}

// readOwn returns what the pod handed over, or what is wrong with it.
func readOwn(c *corev1.ConfigMap) (*ownResult, error) {
	o, suite, err := report.ParseOwn([]byte(c.Data[pod.KeyResult]))
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s key %s: %w", c.Name, pod.KeyResult, err)
	}
	total := 0
	for name, text := range o.Files {
		if !fileName(name) {
			return nil, fmt.Errorf("ConfigMap %s key %s: a file is called %.60q; allowed: lowercase letters, digits, hyphens and a dot", c.Name, pod.KeyResult, name)
		}
		total += len(name) + len(text)
	}
	if total > maxReportBytes {
		return nil, fmt.Errorf("the report takes %d bytes, a ConfigMap %d", total, maxReportBytes)
	}
	return &ownResult{outcome: o.Outcome, suite: suite, files: o.Files}, nil
}

// fileName reports whether a file of a report can be a key of a ConfigMap: NAME.EXT.
func fileName(name string) bool {
	base, ext, found := strings.Cut(name, ".")
	return found && base != "" && ext != "" && len(name) <= 64 && !strings.ContainsFunc(base+ext, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	})
}

// fillOwn copies the result into status, as fill does.
func fillOwn(status *api.OrderProbeStatus, r *ownResult) {
	var judgements []report.Judgement
	if r.suite != nil {
		verdict, reason := r.suite.Verdict()
		status.Verdict, status.VerdictReason, judgements = api.Verdict(verdict), reason, r.suite.Judgements()
		status.Rows = suiteRows(r.suite)
	} else {
		status.Verdict, status.VerdictReason, judgements = api.Verdict(r.outcome.Verdict()), r.outcome.Run.Reason, r.outcome.Judgements()
		status.Rows = figureRows(r.outcome)
	}
	status.VerdictReason = messages.Cut(status.VerdictReason, maxReason)
	status.Mean, status.P99, status.Verdicts = "", "", nil
	for _, j := range judgements {
		status.Verdicts = append(status.Verdicts, api.ProbeVerdict{Name: j.Name, Status: j.Status, Reason: messages.Cut(j.Detail, maxReason)})
	}
}

// suiteRows are one for each published table.
func suiteRows(s *report.Suite) (rows []api.ProbeRow) {
	for i := range s.Rows {
		row := &s.Rows[i]
		out := ownRow(row.Report+" "+row.Table, row.Figure, row.Unit, row.Verdict)
		setFigures(&out, row.Published, row.Here, row.Ratio, !row.Disturbed)
		rows = append(rows, out)
	}
	return slices.Clip(rows[:min(len(rows), maxRows)])
}

// figureRows are those of a scenario that stand beside published ones.
func figureRows(o *report.Outcome) (rows []api.ProbeRow) {
	for _, c := range o.Figures {
		verdict := o.Run.Verdict
		if c.Here == nil {
			verdict = report.NotRun
		}
		out := ownRow(strings.TrimSpace(c.Table+" "+c.Row), c.Metric, c.Unit, verdict)
		setFigures(&out, &c.Published, c.Here, c.Ratio, c.Invalid == "")
		rows = append(rows, out)
	}
	return slices.Clip(rows[:min(len(rows), maxRows)])
}

// maxCell is the longest text in a row of status, in bytes.
const maxCell = 128

func ownRow(what, metric, unit, verdict string) api.ProbeRow {
	return api.ProbeRow{Rate: messages.Cut(what, maxCell), Metric: messages.Cut(metric, maxCell), Unit: messages.Cut(unit, maxCell), Verdict: messages.Cut(verdict, maxCell)}
}

// setFigures puts figures into a row as rowOf does: what the machine disturbed is not shown as one.
func setFigures(row *api.ProbeRow, published, here, ratio *float64, counts bool) {
	if published != nil && *published != 0 {
		row.Published = decimal(*published)
	}
	if here != nil && counts {
		row.Here = decimal(*here)
		if ratio != nil {
			row.Ratio = fmt.Sprintf("%.2f", *ratio)
		}
	}
}
