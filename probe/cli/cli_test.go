package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
	"github.com/ordergrid/ordergrid/probe/scenario"
)

func call(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = Main(args, &out, &err)
	return code, out.String(), err.String()
}

func TestUsageErrors(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown command":      {[]string{"start"}, "there are run, suite, list"},
		"unknown flag":         {[]string{"run", "--rate", "5"}, "--rate"},
		"argument":             {[]string{"run", "x"}, "x"},
		"suite out":            {[]string{"suite"}, "--out: name a directory"},
		"suite budget":         {[]string{"suite", "--out", "x", "--budget", "-1s"}, "--budget -1s: must be more than 0"},
		"suite only":           {[]string{"suite", "--out", "x", "--only", "no-such"}, "no scenario has such a name; there are stac-single"},
		"suite regexp":         {[]string{"suite", "--out", "x", "--only", "("}, "--only: error parsing regexp"},
		"suite modes":          {[]string{"suite", "--out", "x", "--quick", "--exact"}, "choose one"},
		"no scenario":          {[]string{"run", "--dev"}, "name one of stac-single, stac-pair, stac-scale"},
		"unknown scenario":     {[]string{"run", "--dev", "--scenario", "stac-triple"}, "stac-triple"},
		"no grid":              {[]string{"run", "--scenario", "stac-pair"}, "--endpoint"},
		"two grids":            {[]string{"run", "--scenario", "stac-pair", "--dev", "--endpoint", "a:1"}, "choose one"},
		"scenarios of 2 grids": {[]string{"run", "--scenario", "stac-pair,stac-single", "--endpoint", "a:1"}, "different grids"},
		"two modes":            {[]string{"run", "--scenario", "stac-pair", "--dev", "--quick", "--exact"}, "choose one"},
		"rates text":           {[]string{"run", "--scenario", "stac-pair", "--dev", "--rates", "fast"}, `"fast" is not a whole number`},
		"rates empty":          {[]string{"run", "--scenario", "stac-pair", "--dev", "--rates", ""}, "not a whole number"},
		"rate 0":               {[]string{"run", "--scenario", "stac-pair", "--dev", "--rates", "0"}, "rate 0: must be 1 to"},
		"measure 0":            {[]string{"run", "--scenario", "stac-pair", "--dev", "--measure", "0s"}, "--measure 0"},
		"measure text":         {[]string{"run", "--scenario", "stac-pair", "--dev", "--measure", "8"}, "missing unit"},
		"threads":              {[]string{"run", "--scenario", "stac-pair", "--dev", "--threads", "65"}, "threads 65: must be 1 to 64"},
		"format":               {[]string{"run", "--scenario", "stac-pair", "--dev", "--format", "xml"}, "table, json and csv"},
		"fix":                  {[]string{"run", "--scenario", "stac-pair", "--dev", "--fix", "5.0"}, "there are 4.2, 4.4 and 5.0SP2"},
		"timeout":              {[]string{"run", "--scenario", "stac-pair", "--dev", "--timeout", "1us"}, "10ms to 1h"},
		"metrics":              {[]string{"run", "--scenario", "stac-pair", "--dev", "--metrics", "10.0.0.1:9400"}, "http://"},
		"memory":               {[]string{"run", "--scenario", "stac-pair", "--dev", "--memory-mib", "1"}, "64 or more"},
		"arrival":              {[]string{"run", "--scenario", "stac-pair", "--dev", "--arrival", "poisson"}, `--arrival "poisson": there are steady, hawkes, day and replay`},
		"arrival of another":   {[]string{"run", "--scenario", "flow-day", "--dev", "--arrival", "hawkes"}, "scenario flow-day is about arrival day"},
		"orders":               {[]string{"run", "--scenario", "stac-pair", "--dev", "--orders", "all"}, `--orders "all": there are uniform and varied`},
		"branching 0":          {[]string{"run", "--scenario", "flow-hawkes", "--dev", "--branching", "0"}, "--branching 0: must be more than 0"},
		"no recording":         {[]string{"run", "--scenario", "flow-replay", "--dev"}, "--replay: name a recording"},
		"recording not played": {[]string{"run", "--scenario", "stac-pair", "--dev", "--replay", "x.csv"}, "only with --arrival replay"},
		"recording not there":  {[]string{"run", "--scenario", "flow-replay", "--dev", "--replay", "/nonexistent/x.csv"}, "--replay: open /nonexistent/x.csv"},
		"recording is no log":  {[]string{"run", "--scenario", "flow-replay", "--dev", "--replay", "cli_test.go"}, "no order in it"},
		"replay format":        {[]string{"run", "--scenario", "flow-replay", "--dev", "--replay", "x", "--replay-format", "itch"}, "there are lobster and fix"},
		"speeds":               {[]string{"run", "--scenario", "flow-replay", "--dev", "--replay", "x", "--speeds", "fast"}, "--speeds: \"fast\" is not a whole number"},
		"grids of plots":       {[]string{"run", "--scenario", "stac-timeplot", "--endpoint", "a:1"}, "use --dev, which starts them"},
		"rates of plots":       {[]string{"run", "--scenario", "stac-timeplot", "--dev", "--rates", "100"}, "the plots are of published rates"},
		"which grid":           {[]string{"run", "--scenario", "gs-write", "--endpoint", "a:1"}, "--replicas: scenario gs-write compares 2 grids"},
		"replicas 0":           {[]string{"run", "--scenario", "gs-write", "--dev", "--replicas", "0"}, "--replicas 0: must be more than 0"},
		"replicas of another":  {[]string{"run", "--scenario", "stac-pair", "--dev", "--replicas", "2"}, "go with scenario gs-write only"},
		"pod without endpoint": {[]string{"pod", "--probe", "p", "--index", "0", "--scenario", "stac-pair"}, "--endpoint"},
		"pod index":            {[]string{"pod", "--probe", "p", "--index", "2", "--scenario", "stac-pair", "--endpoint", "a:1"}, "pods 0 to 1"},
		"pod door":             {[]string{"pod", "--probe", "p", "--index", "0", "--scenario", "stac-pair", "--endpoint", "a:1", "--through", "tcp"}, `--through "tcp": allowed: native, fix`},
		"pod run id":           {[]string{"pod", "--probe", "p", "--index", "0", "--scenario", "stac-pair", "--endpoint", "a:1", "--run-id", "x"}, "--run-id"},
		"report without dir":   {[]string{"report"}, "at least 1"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, err := call(c.args...)
			if code != ExitUsage || !strings.Contains(err, c.want) || out != "" {
				t.Errorf("code %d, stderr %q, stdout %q; want code %d and %q", code, err, out, ExitUsage, c.want)
			}
		})
	}
}

func TestCouldNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no grid-node": {[]string{"run", "--scenario", "stac-pair", "--dev", "--grid-node", "/nonexistent/grid-node"}, "grid-node"},
		"no report":    {[]string{"report", t.TempDir()}, "no results.json"},
		"no ledger":    {[]string{"ledger", "/nonexistent"}, "nonexistent"},
	} {
		t.Run(name, func(t *testing.T) {
			if code, _, err := call(c.args...); code != ExitFailed || !strings.Contains(err, c.want) {
				t.Errorf("code %d, stderr %q", code, err)
			}
		})
	}
}

func TestListNamesEverything(t *testing.T) {
	code, out, _ := call("list")
	for _, want := range []string{"stac-single", "stac-pair", "stac-scale", "18 steps of 30s + 10m0s", "schedule"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("code %d, no %q in\n%s", code, want, out)
		}
	}
	if code, out, _ := call("--version"); code != 0 || !strings.HasPrefix(out, "order-probe ") {
		t.Errorf("code %d, %q", code, out)
	}
}

func TestWorseOutcome(t *testing.T) {
	incorrect, invalid := &codeError{code: ExitIncorrect}, &codeError{code: ExitInvalid}
	judged := &codeError{code: ExitJudged}
	if codeOf(worse(judged, invalid)) != ExitInvalid || codeOf(worse(judged, nil)) != ExitJudged {
		t.Error("an invalid figure is worse than one that is too high")
	}
	for _, c := range []struct {
		rep  report.Report
		want int
	}{
		{report.Report{Verdict: report.ReportValid, Judgements: []report.Judgement{{Name: "SHAPE", Status: report.Pass}, {Name: "SLO", Status: report.NotJudged}}}, ExitOK},
		{report.Report{Verdict: report.ReportValid, Judgements: []report.Judgement{{Name: "SHAPE", Status: report.Fail}}}, ExitJudged},
		{report.Report{Verdict: report.ReportInvalid, Judgements: []report.Judgement{{Name: "LAB-ABS", Status: report.Fail}}}, ExitInvalid},
		{report.Report{Verdict: report.ReportIncorrect, Judgements: []report.Judgement{{Name: "CORRECT", Status: report.Fail}}}, ExitIncorrect},
	} {
		if got := codeOf(outcome(&c.rep)); got != c.want {
			t.Errorf("%s %+v: exit code %d, want %d", c.rep.Verdict, c.rep.Judgements, got, c.want)
		}
	}
	if codeOf(worse(invalid, incorrect)) != ExitIncorrect || codeOf(worse(incorrect, invalid)) != ExitIncorrect || codeOf(worse(nil, invalid)) != ExitInvalid || worse(nil, nil) != nil {
		t.Error("order of outcomes")
	}
}

func TestProgressBar(t *testing.T) {
	d, err := published.Load()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := scenario.New(d, "stac-pair", scenario.Options{Mode: scenario.Quick})
	if err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	p := newProgress(&lines, plan)
	p.Begin(plan.Steps[1], 20*time.Second)
	p.End(plan.Steps[1], []report.ProbeStep{{Acked: 7}})
	p.close()
	want := "stac-pair: step 2 of 4: 2000 orders/s; 20s left\nstac-pair: 2000 orders/s: 7 acknowledged, create-to-end mean 0 us, p99 0 us\n"
	if lines.String() != want {
		t.Errorf("got %q\nwant %q", lines.String(), want)
	}
	if bar := p.bar(p.begun.Add(3 * time.Second)); bar != "[===========                   ] 2/4 2000 orders/s, measuring, 3s gone, 17s left" {
		t.Errorf("%q", bar)
	}
	if bar := p.bar(p.begun.Add(time.Hour)); !strings.Contains(bar, "0s left") {
		t.Errorf("%q", bar)
	}
}
