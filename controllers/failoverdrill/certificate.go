package failoverdrill

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
)

// Keys of the ConfigMap with the certificate. The JSON of a drill with many steps is compressed: a ConfigMap has 1 MiB.
const (
	keyText    = "certificate.txt"
	keyJSON    = "certificate.json"
	keyJSONZip = "certificate.json.gz"

	maxConfigMap = 1<<20 - 16<<10
)

// finish has the recorder end the traffic and judge, and passes what is needed to repeat the drill.
func (r *Reconciler) finish(ctx context.Context, o *observation) error {
	c, err := r.recorder(ctx, o)
	if err != nil {
		return err
	}
	refused := 0
	for i := range o.drill.Status.Steps {
		s := &o.drill.Status.Steps[i]
		switch {
		case s.Outcome == api.StepRefused && wantsRefusal(o, s):
			refused++ // it was never begun, as intended
		case (s.Outcome == api.StepFailed || s.Outcome == api.StepAborted) && s.Attempts > 0:
			if _, err := c.Tell(ctx, int(s.Index), recorder.Abandoned, note(s, s.Message)); err != nil && !recorder.IsNotFound(err) {
				return err
			}
		}
	}
	f := recorder.Finish{Context: r.contextOf(ctx, o)}
	f.Context.StepsAsked -= refused
	if o.grid != nil {
		now, err := r.situation(ctx, o)
		if err != nil {
			return err
		}
		f.DataLoss, f.Nodes = dataLoss(o.grid, now), dataPorts(now)
	}
	if e := o.drill.Status.Ending; e.Outcome != api.OutcomeComplete {
		f.Aborted = e.Reason + ": " + e.Message
	}
	return c.Finish(ctx, f)
}

// dataLoss are the partitions for which the grid suspects that no process holds their log.
func dataLoss(grid *api.OrderGrid, now *plan.Situation) []string {
	var records []string
	for _, p := range grid.Status.Partitions {
		if p.Problem == api.ConditionDataLossSuspected {
			records = append(records, p.Name)
		}
	}
	return served(now, records)
}

// dataPorts of all pods: one that replaced another may have its sink's files. A member's address is the one on the
// grid's own network, where it has one; a pod that is not a member has its own.
func dataPorts(now *plan.Situation) (list []string) {
	known := map[string]bool{}
	for i := range now.Partitions {
		for _, m := range now.Partitions[i].Status.InSync {
			known[m.PodName] = true
			list = append(list, m.Address)
		}
	}
	for i := range now.Pods {
		if ip := now.Pods[i].Status.PodIP; ip != "" && !known[now.Pods[i].Name] {
			list = append(list, net.JoinHostPort(ip, strconv.Itoa(api.DataPort)))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// contextOf a drill is the part of its certificate that the recorder does not see.
func (r *Reconciler) contextOf(ctx context.Context, o *observation) recorder.Context {
	d := o.drill
	out := recorder.Context{
		Drill: d.Namespace + "/" + d.Name, UID: string(d.UID), Grid: d.Namespace + "/" + d.Spec.GridRef.Name,
		Suite: string(d.Spec.Suite), Seed: d.Status.Seed, StepsAsked: int(d.Status.PlannedSteps), Expect: expectDrill(&d.Spec),
		Spec: jsonOf(d.Spec), Providers: map[string]string{}, Images: map[string]string{}, Versions: map[string]string{},
	}
	if out.Suite == "" {
		out.Suite = "own faults"
	}
	if o.grid != nil {
		out.GridSpec = jsonOf(o.grid.Spec)
		for _, c := range o.grid.Status.Conditions {
			if c.Type == api.ConditionRedundant && d.Status.StartTime != nil && c.LastTransitionTime.After(d.Status.StartTime.Time) {
				out.Warnings = append(out.Warnings, fmt.Sprintf("%s %s=%s %s: %s", c.LastTransitionTime.UTC().Format(time.RFC3339), c.Type, c.Status, c.Reason, c.Message))
			}
		}
	}
	for _, k := range d.Status.Skipped {
		out.Warnings = append(out.Warnings, fmt.Sprintf("not shown: %s (%s), which was skipped: %s", k.Fault, k.Type, k.Message))
	}
	for _, p := range d.Status.Providers {
		out.Providers[string(p.Type)] = p.Provider
	}
	if r.Versions != nil {
		out.Versions = r.Versions(ctx)
	}
	if o.pod != nil {
		for _, c := range o.pod.Status.ContainerStatuses {
			out.Images["recorder"] = imageOf(&c)
		}
	}
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, inGrid(d)...); err == nil {
		for i := range pods.Items {
			for _, c := range pods.Items[i].Status.ContainerStatuses {
				out.Images["grid-node"] = imageOf(&c)
			}
		}
	}
	return out
}

func imageOf(c *corev1.ContainerStatus) string {
	if c.ImageID != "" {
		return c.Image + " " + c.ImageID
	}
	return c.Image
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error() // impossible for a spec from the API server
	}
	return string(text)
}

// collect fetches the certificate, keeps it in a ConfigMap, and copies its figures into status.
func (r *Reconciler) collect(ctx context.Context, o *observation, d *decision) error {
	c, err := r.recorder(ctx, o)
	if err != nil {
		return err
	}
	text, err := c.Certificate(ctx)
	if err != nil {
		return err
	}
	table, err := c.Text(ctx)
	if err != nil {
		return err
	}
	sums, err := c.Digests(ctx)
	if err != nil {
		return err
	}
	var cert certificate.Certificate
	if err := json.Unmarshal(text, &cert); err != nil || cert.Schema != certificate.Schema {
		d.phase, d.reason = phaseFailed, reasonNotJudged
		d.message = fmt.Sprintf("the recorder's certificate cannot be read (schema %q, expected %s, %v); are recorder and operator of one version?", cert.Schema, certificate.Schema, err)
		return nil
	}
	m := certificateMap(o.drill, text, table)
	if _, err := r.applier().Apply(ctx, o.drill, m); err != nil {
		return err
	}
	fill(&o.drill.Status, &cert)
	s := o.drill.Status.Certificate
	s.SHA256, s.HistorySHA256, s.ConfigMap = sums.Certificate, cert.HistorySHA256, m.Name
	if s.HistorySHA256 == "" {
		s.HistorySHA256 = sums.History
	}
	if d.phase == phaseFailed {
		return nil // the failure is more important than what was certified until then
	}
	d.message = fmt.Sprintf("%s: %s", s.Verdict, brief(s.Reason))
	return nil
}

// certificateMap is the ConfigMap with the certificate.
func certificateMap(d *api.FailoverDrill, text, table []byte) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: drillMeta(d, api.CertificateName(d.Name)), Data: map[string]string{}}
	if len(table) > maxConfigMap/2 {
		table = append(table[:maxConfigMap/2:maxConfigMap/2], "\n(the rest is in the certificate's JSON)\n"...)
	}
	m.Data[keyText] = string(table)
	room := maxConfigMap - len(table)
	if len(text) <= room {
		m.Data[keyJSON] = string(text)
		return m
	}
	var small bytes.Buffer
	z := gzip.NewWriter(&small)
	_, _ = z.Write(text) // into memory
	_ = z.Close()
	if small.Len()*4/3 <= room { // in JSON it is base64
		m.BinaryData = map[string][]byte{keyJSONZip: small.Bytes()}
	}
	return m
}

// fill copies the figures of a certificate into status.
func fill(s *api.FailoverDrillStatus, c *certificate.Certificate) {
	out := &api.DrillCertificate{
		Verdict: api.DrillVerdict(c.Verdict), Created: c.Orders.Created, Acknowledged: c.Orders.Acknowledged, Rejected: c.Orders.Rejected, Unknown: c.Orders.Unknown,
		Lost: c.Ledger.Lost, Missing: c.Ledger.MissingInCopies + c.Ledger.MissingDownstream, Duplicated: c.Ledger.Duplicated, Gaps: c.Ledger.Gaps, OutOfOrder: c.Ledger.OutOfOrder,
		NegativeControl: controlText(&c.Control),
	}
	out.Reason = fmt.Sprintf("nothing was lost, repeated or out of order in %d steps, and all expectations were met", len(c.Steps))
	if len(c.Reasons) > 0 {
		out.Reason = brief(c.Reasons[0])
	}
	if !strings.HasPrefix(c.Ledger.Sink, "no sink") {
		out.Downstream = &c.Ledger.Downstream
	}
	if c.Outage.N > 0 {
		out.OutageP50, out.OutageP99, out.OutageMax = duration(c.Outage.P50), duration(c.Outage.P99), duration(c.Outage.Max)
	}
	s.Certificate = out
	byIndex := map[int32]*certificate.Step{}
	for i := range c.Steps {
		byIndex[int32(c.Steps[i].Index)] = &c.Steps[i]
	}
	for i := range s.Steps {
		if from := byIndex[s.Steps[i].Index]; from != nil {
			fillStep(&s.Steps[i], from)
		}
	}
}

// fillStep replaces the live observations of the step by the judgement of the whole history.
func fillStep(s *api.DrillStep, from *certificate.Step) {
	if from.Outage > 0 {
		s.Outage = duration(from.Outage)
	}
	if from.FirstServed > 0 {
		s.ServedAfter = duration(from.FirstServed)
	}
	if from.Detected > 0 {
		s.DetectedAfter = duration(from.Detected)
	}
	if from.TakenOver > 0 {
		s.TakenOverAfter = duration(from.TakenOver)
	}
	if after := from.Lasted + from.RedundantAfter; after > 0 {
		s.RedundantAfter = duration(after)
	}
	for _, l := range []struct {
		into **metav1.Duration
		n    int
		p99  time.Duration
	}{{&s.P99Before, from.Before.N, from.Before.P99}, {&s.P99During, from.During.N, from.During.P99}, {&s.P99After, from.After.N, from.After.P99}} {
		if l.n > 0 {
			*l.into = duration(l.p99)
		}
	}
	s.FailedOrders = from.FailedOrders
	if s.Outcome == api.StepPassed && from.Outcome == certificate.StepMissed {
		s.Outcome = api.StepMissed
		if len(from.Reasons) > 0 {
			s.Message = brief(from.Reasons[0])
		}
	}
}

func controlText(c *certificate.Control) string {
	if c.Result == "" {
		return ""
	}
	return fmt.Sprintf("%s: %d taken out, %d found lost; %d put in twice, %d found duplicated", c.Result, c.Dropped, c.Lost, c.Repeated, c.Duplicated)
}

func duration(d time.Duration) *metav1.Duration {
	return &metav1.Duration{Duration: d.Round(time.Microsecond)}
}
