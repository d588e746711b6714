package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
)

// lockedBuffer is written by the command and read by the test.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// runIn is run with a context, which simulates Ctrl-C.
func runIn(ctx context.Context, out *lockedBuffer, args ...string) error {
	cmd := rootCommand()
	cmd.SetOut(out)
	cmd.SetErr(out)
	cmd.SetArgs(args)
	return cmd.ExecuteContext(ctx)
}

func wantCode(t *testing.T, err error, want int) {
	t.Helper()
	var code exitError
	switch {
	case want == 0 && err != nil:
		t.Errorf("error %v", err)
	case want != 0 && (!errors.As(err, &code) || int(code) != want):
		t.Errorf("error %v, want exit code %d", err, want)
	}
}

func TestDrillUsage(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"drill", "run"}, "0 arguments, allowed: the name of one suite"},
		{[]string{"drill", "run", "pull-the-plug"}, "--grid is missing: name the OrderGrid to inject faults into"},
		{[]string{"drill", "run", "kill", "--grid", "g"}, `suite "kill" is unknown; allowed are pull-the-plug, network, node`},
		{[]string{"drill", "run", "network", "--grid", "g", "--out", "x"}, "--out and --abort-on-interrupt are for the end of a drill that is followed; add --follow"},
		{[]string{"drill", "run", "network", "--grid", "g", "--start-timeout", "0s"}, "--start-timeout: value 0s, allowed: more than 0s"},
		{[]string{"drill", "break"}, `unknown command "break"`},
		{[]string{"drill", "status"}, "0 arguments, allowed: the name of one FailoverDrill"},
		{[]string{"drill", "list", "x"}, "1 arguments, allowed: none"},
		{[]string{"drill", "certificate", "x", "-o", "pdf"}, `--output: value "pdf", allowed: text, json, html`},
		{[]string{"drill", "suites", "kill"}, `suite "kill" is unknown`},
		{[]string{"drill", "suites", "-o", "json"}, `--output: value "json", allowed: text, yaml`},
	} {
		_, err := run(tc.args...)
		var usage usageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: error %v, want a usage error with %q", tc.args, err, tc.want)
		}
	}
}

func TestDrillSuites(t *testing.T) {
	out, err := run("drill", "suites")
	if err != nil || strings.Count(out, "\n") != 11 || !strings.Contains(out, "pull-the-plug               1       10           3000") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = run("drill", "suites", "cascade")
	if err != nil || !strings.Contains(out, "lose-backups  PodFailure     Backups  20s       Redundant  outage at most 1m0s, the grid warns") ||
		!strings.Contains(out, "one-too-many  ContainerKill  Primary  a moment  Held       is refused, outage at most 1m0s") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestDrillPrint: the printed drill can be created, and follows the flags.
func TestDrillPrint(t *testing.T) {
	s := newStage(t)
	out, err := run("drill", "run", "network", "--grid", "trades", "--name", "net", "--repetitions", "2", "--rate", "2", "--seed", "7", "--probes", "3", "--max-shards", "2",
		"--last-copy", "Take", "--allow-not-redundant", "--skip-unsupported", "--print")
	if err != nil {
		t.Fatal(err)
	}
	d := &api.FailoverDrill{}
	s.must(yaml.UnmarshalStrict([]byte(out), d))
	d.Namespace = s.ns
	s.must(s.cl.Create(t.Context(), d))
	p := d.Spec
	if d.Name != "net" || p.Suite != api.SuiteNetwork || *p.Repetitions != 2 || *p.Traffic.RatePerProbe != 2 || *p.Seed != 7 || p.Traffic.Probes != 3 || p.Safety.MaxShards != 2 ||
		p.Safety.LastCopy != api.LastCopyTake || p.Safety.WhenNotRedundant != api.NotRedundantAllow || p.UnsupportedFaults != api.UnsupportedSkip {
		t.Errorf("%s", out)
	}
	// The printed faults of a suite are valid as own faults.
	if out, err = run("drill", "suites", "overnight", "-o", "yaml"); err != nil {
		t.Fatal(err)
	}
	own := &api.FailoverDrill{ObjectMeta: metav1.ObjectMeta{Name: "own", Namespace: s.ns}}
	s.must(yaml.UnmarshalStrict([]byte(out), &own.Spec))
	own.Spec.GridRef.Name = "trades"
	s.must(s.cl.Create(t.Context(), own))
}

// drillOf waits for the one drill of the stage.
func (s *stage) drillOf() *api.FailoverDrill {
	s.t.Helper()
	for s.t.Context().Err() == nil {
		var list api.FailoverDrillList
		s.must(s.cl.List(s.t.Context(), &list, client.InNamespace(s.ns)))
		if len(list.Items) == 1 {
			return &list.Items[0]
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.t.Fatal("no drill")
	return nil
}

// operate plays the operator's status of a drill.
func (s *stage) operate(d *api.FailoverDrill, change func(*api.FailoverDrillStatus)) {
	s.t.Helper()
	s.must(s.cl.Get(s.t.Context(), client.ObjectKeyFromObject(d), d))
	change(&d.Status)
	s.must(s.cl.Status().Update(s.t.Context(), d))
}

func stands(st *api.FailoverDrillStatus, kind, reason, message string) {
	for _, k := range []string{api.ConditionRunning, api.ConditionComplete, api.ConditionFailed} {
		is := metav1.ConditionFalse
		if k == kind {
			is = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&st.Conditions, metav1.Condition{Type: k, Status: is, Reason: reason, Message: message})
	}
}

func dur(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

// await waits until the output contains a text.
func await(t *testing.T, out *lockedBuffer, text string) {
	t.Helper()
	for !strings.Contains(out.String(), text) {
		select {
		case <-t.Context().Done():
			t.Fatalf("no %q in\n%s", text, out)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// certify ends a drill with a verdict and puts the certificate into its ConfigMap.
func (s *stage) certify(d *api.FailoverDrill, verdict api.DrillVerdict, lost int64) {
	s.t.Helper()
	const json = `{"verdict":"x"}`
	s.must(s.cl.Create(s.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: api.CertificateName(d.Name), Namespace: s.ns},
		Data: map[string]string{certificate.TextFile: "LOSS CERTIFICATE\n", certificate.JSONFile: json}}))
	s.operate(d, func(st *api.FailoverDrillStatus) {
		stands(st, api.ConditionComplete, "StepsDone", "all 1 steps are done")
		st.Certificate = &api.DrillCertificate{Verdict: verdict, Reason: "because", Acknowledged: 1000, Lost: lost, SHA256: certificate.Sum([]byte(json)), ConfigMap: api.CertificateName(d.Name),
			OutageP50: dur(40 * time.Millisecond), OutageP99: dur(61234 * time.Microsecond), OutageMax: dur(61234 * time.Microsecond)}
	})
}

// TestDrillRunFollow: the output, and the exit code, for each verdict.
func TestDrillRunFollow(t *testing.T) {
	for verdict, code := range map[api.DrillVerdict]int{api.DrillPass: 0, api.DrillViolated: 1, api.DrillMissed: 1, api.DrillInvalid: 3} {
		t.Run(string(verdict), func(t *testing.T) {
			s, out, ended := newStage(t), &lockedBuffer{}, make(chan error, 1)
			go func() {
				ended <- runIn(t.Context(), out, append([]string{"drill", "run", "pull-the-plug", "--grid", "trades", "-f"}, s.args...)...)
			}()
			d := s.drillOf()
			if !strings.HasPrefix(d.Name, "pull-the-plug-") {
				t.Errorf("name %s", d.Name)
			}
			s.operate(d, func(st *api.FailoverDrillStatus) {
				st.Seed, st.PlannedSteps = 4711, 1
				stands(st, api.ConditionRunning, "Starting", "starting the recorder")
			})
			await(t, out, "seed 4711, 1 steps")
			await(t, out, "drill         Starting: starting the recorder")
			at := metav1.NowMicro()
			step := api.DrillStep{Index: 0, Repetition: 1, Fault: "kill-primary", Type: api.FaultPodKill, Partition: "trades-p1", Provider: "ChaosMesh",
				Targets: []api.DrillTargetPod{{Name: "trades-s0-1"}}, State: api.StepHolding, StateTime: &at, InjectedTime: &at, Witness: &api.DrillWitness{State: api.WitnessSeen, Message: "pod uid a is gone"}}
			s.operate(d, func(st *api.FailoverDrillStatus) { st.Steps = []api.DrillStep{step} })
			await(t, out, "step 1/1      has hit: pod uid a is gone")
			step.State, step.Outcome, step.Outage, step.RedundantAfter = api.StepDone, api.StepPassed, dur(46123*time.Microsecond), dur(3210*time.Millisecond)
			s.operate(d, func(st *api.FailoverDrillStatus) { st.Steps = []api.DrillStep{step} })
			s.certify(d, verdict, 3)
			wantCode(t, <-ended, code)
			for _, line := range []string{
				"step 1/1      kill-primary (PodKill, partition trades-p1)", "step 1/1      injecting into trades-s0-1 by ChaosMesh",
				"step 1/1      Passed: outage 46.12ms; redundant after 3.21s", "complete      StepsDone: all 1 steps are done",
				"certificate   " + string(verdict) + ": lost 3, missing 0, duplicated 0, gaps 0, out of order 0; 1000 orders acknowledged to the traffic; outage p50 40ms, p99 61.23ms, max 61.23ms. because",
				"LOSS CERTIFICATE",
			} {
				if strings.Count(out.String(), line) != 1 {
					t.Errorf("no %q, or more than one", line)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

// TestDrillInterrupted: Ctrl-C does not abort a drill unless requested.
func TestDrillInterrupted(t *testing.T) {
	for _, abort := range []bool{false, true} {
		s, out, ended := newStage(t), &lockedBuffer{}, make(chan error, 1)
		ctx, interrupt := context.WithCancel(t.Context())
		args := append([]string{"drill", "run", "network", "--grid", "trades", "-f"}, s.args...)
		if abort {
			args = append(args, "--abort-on-interrupt")
		}
		go func() { ended <- runIn(ctx, out, args...) }()
		d := s.drillOf()
		s.operate(d, func(st *api.FailoverDrillStatus) { stands(st, api.ConditionRunning, "Starting", "the recorder") })
		await(t, out, "Starting")
		interrupt()
		if abort {
			await(t, out, d.Name+" is aborted; waiting until every fault is recovered")
			s.operate(d, func(st *api.FailoverDrillStatus) { stands(st, api.ConditionFailed, "Aborted", "spec.state is Abort") })
			wantCode(t, <-ended, exitNothing)
		} else {
			wantCode(t, <-ended, exitInterrupted)
			if !strings.Contains(out.String(), d.Name+" goes on. To follow it again: kubectl ordergrid drill follow "+d.Name+" -n "+s.ns+". To end it: kubectl ordergrid drill abort "+d.Name+" -n "+s.ns) {
				t.Errorf("said %s", out)
			}
		}
		s.must(s.cl.Get(t.Context(), client.ObjectKeyFromObject(d), d))
		if (d.Spec.State == api.DrillAbort) != abort {
			t.Errorf("--abort-on-interrupt=%v: state %s", abort, d.Spec.State)
		}
	}
}

// TestDrillNotBegun: a drill that does not begin is not left behind to begin later.
func TestDrillNotBegun(t *testing.T) {
	s, out := newStage(t), &lockedBuffer{}
	err := runIn(t.Context(), out, append([]string{"drill", "run", "node", "--grid", "trades", "-f", "--start-timeout", "1s"}, s.args...)...)
	wantCode(t, err, exitNothing)
	if d := s.drillOf(); d.Spec.State != api.DrillAbort || !strings.Contains(out.String(), "is aborted: after 1s the operator has not seen it; is it running") {
		t.Errorf("state %s, output %s", d.Spec.State, out)
	}
	if _, err := run(append([]string{"drill", "run", "node", "--grid", "none"}, s.args...)...); err == nil || !strings.Contains(err.Error(), "ordergrid "+s.ns+"/none does not exist") {
		t.Errorf("an unknown grid: %v", err)
	}
	if _, err := run(append([]string{"drill", "run", "node", "--grid", "trades", "--rate", "-1"}, s.args...)...); !errors.As(err, new(usageError)) || !strings.Contains(err.Error(), "spec.traffic.ratePerProbe: Invalid value") {
		t.Errorf("an impossible rate: %v", err)
	}
	if _, err := run(append([]string{"drill", "follow", "none"}, s.args...)...); err == nil || !strings.Contains(err.Error(), "failoverdrill "+s.ns+"/none does not exist") {
		t.Errorf("an unknown drill: %v", err)
	}
}

// TestGiveUp: obstacles that require user action are reported soon; transient ones are waited for.
func TestGiveUp(t *testing.T) {
	now := time.Now()
	for _, tc := range []struct {
		reason  string
		waited  time.Duration // since the reason was seen
		overall time.Duration
		want    string
	}{
		{"FaultNotPossible", 0, 0, ""},
		{"FaultNotPossible", standing, standing, "it cannot begin until the above is fixed"},
		{"OtherDrill", standing, standing, ""},
		{"GridNotReady", time.Minute, time.Minute, ""},
		{"OtherDrill", time.Hour, time.Hour, "it has not begun after 10m0s"},
	} {
		w := &follower{startLimit: 10 * time.Minute, began: now.Add(-tc.overall), now: func() time.Time { return now }}
		d := &api.FailoverDrill{}
		meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{Type: api.ConditionPreflight, Status: metav1.ConditionFalse, Reason: tc.reason})
		before := now
		w.now = func() time.Time { return before.Add(-tc.waited) }
		_ = w.giveUp(d)
		w.now = func() time.Time { return now }
		if got := w.giveUp(d); got != tc.want {
			t.Errorf("%s for %s: %q, want %q", tc.reason, tc.waited, got, tc.want)
		}
		stands(&d.Status, api.ConditionRunning, "Step", "")
		if got := w.giveUp(d); got != "" {
			t.Errorf("a drill that runs: %q", got)
		}
	}
}

// TestDrillAbort: it ends once no fault is in place.
func TestDrillAbort(t *testing.T) {
	s, out, ended := newStage(t), &lockedBuffer{}, make(chan error, 1)
	d := &api.FailoverDrill{ObjectMeta: metav1.ObjectMeta{Name: "net", Namespace: s.ns}, Spec: api.FailoverDrillSpec{GridRef: api.GridReference{Name: "trades"}, Suite: api.SuiteNetwork}}
	s.must(s.cl.Create(t.Context(), d))
	recovered := func(st *api.FailoverDrillStatus, is metav1.ConditionStatus, reason string) {
		meta.SetStatusCondition(&st.Conditions, metav1.Condition{Type: api.ConditionRecovered, Status: is, Reason: reason, Message: "cut-primary"})
	}
	s.operate(d, func(st *api.FailoverDrillStatus) {
		stands(st, api.ConditionRunning, "Step", "")
		recovered(st, metav1.ConditionFalse, "FaultActive")
	})
	wantCode(t, runIn(t.Context(), out, append([]string{"drill", "abort", "net", "--timeout", "700ms"}, s.args...)...), exitNotDone)
	if !strings.Contains(out.String(), "not all faults are recovered, or the drill is not over: FaultActive: cut-primary") {
		t.Errorf("said %s", out)
	}
	go func() { ended <- runIn(t.Context(), out, append([]string{"drill", "abort", "net"}, s.args...)...) }()
	s.operate(d, func(st *api.FailoverDrillStatus) {
		stands(st, api.ConditionFailed, "Aborted", "")
		recovered(st, metav1.ConditionTrue, "NoFault")
	})
	wantCode(t, <-ended, 0)
	s.must(s.cl.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	if d.Spec.State != api.DrillAbort {
		t.Errorf("state %s", d.Spec.State)
	}
	out2, err := run(append([]string{"drill", "abort", "net"}, s.args...)...)
	if err != nil || !strings.Contains(out2, "net is over already (Aborted); no fault of it is in place") {
		t.Errorf("%v: %s", err, out2)
	}
}

// TestDrillCertificate: from the ConfigMap, and only if it is the operator's.
func TestDrillCertificate(t *testing.T) {
	s := newStage(t)
	d := &api.FailoverDrill{ObjectMeta: metav1.ObjectMeta{Name: "net", Namespace: s.ns}, Spec: api.FailoverDrillSpec{GridRef: api.GridReference{Name: "trades"}, Suite: api.SuiteNetwork}}
	s.must(s.cl.Create(t.Context(), d))
	for _, command := range []string{"certificate", "history"} {
		if _, err := run(append([]string{"drill", command, "net"}, s.args...)...); err == nil || !strings.Contains(err.Error(), "kubectl ordergrid drill follow net") {
			t.Errorf("%s before the end: %v", command, err)
		}
	}
	s.certify(d, api.DrillPass, 0)
	for form, want := range map[string]string{"text": "LOSS CERTIFICATE\n", "json": `{"verdict":"x"}`} {
		if out, err := run(append([]string{"drill", "certificate", "net", "-o", form}, s.args...)...); err != nil || out != want {
			t.Errorf("%s: %q, error %v", form, out, err)
		}
	}
	if _, err := run(append([]string{"drill", "certificate", "net", "-o", "html"}, s.args...)...); err == nil || !strings.Contains(err.Error(), "drill net has no recorder") {
		t.Errorf("the page comes from the recorder, which does not exist: %v", err)
	}
	out, err := run(append([]string{"drill", "list"}, s.args...)...)
	if err != nil || !strings.Contains(out, "trades  network  StepsDone  -      Pass     0     61.23ms") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = run(append([]string{"drill", "status", "net"}, s.args...)...)
	if err != nil || !strings.Contains(out, "Pass: lost 0, missing 0, duplicated 0") {
		t.Errorf("%v\n%s", err, out)
	}
	m := &corev1.ConfigMap{}
	s.must(s.cl.Get(t.Context(), client.ObjectKey{Namespace: s.ns, Name: api.CertificateName("net")}, m))
	m.Data[certificate.JSONFile] = `{"verdict":"y"}`
	s.must(s.cl.Update(t.Context(), m))
	if _, err := run(append([]string{"drill", "certificate", "net", "-o", "json"}, s.args...)...); err == nil || !strings.Contains(err.Error(), "certificate of net was changed: its sha256 is") {
		t.Errorf("a changed certificate: %v", err)
	}
	// A missing certificate is not a success, whatever its verdict.
	folder := filepath.Join(t.TempDir(), "out")
	wantCode(t, runIn(t.Context(), &lockedBuffer{}, append([]string{"drill", "follow", "net", "--out", folder}, s.args...)...), exitFailed)
	if text, err := os.ReadFile(filepath.Join(folder, fileDrill)); err != nil || !strings.Contains(string(text), "kind: FailoverDrill") {
		t.Errorf("%s, error %v", text, err)
	}
}
