package ordergrid

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// limitedGrid names limits.
func limitedGrid() *api.OrderGrid {
	grid := pairGrid()
	grid.Spec.RiskProfile = &api.RiskProfileReference{Name: "desk-a"}
	return grid
}

func riskProfile(spec api.RiskProfileSpec) *api.RiskProfile {
	return &api.RiskProfile{ObjectMeta: metav1.ObjectMeta{Name: "desk-a", UID: "u1", Generation: 3}, Spec: spec}
}

// TestPlanLimits: the nodes are given what they accept, in the form that their logs have, and otherwise keep what they have.
func TestPlanLimits(t *testing.T) {
	const given = `{"name":"desk-a","maxOrderVolume":"10"}`
	for name, c := range map[string]struct {
		before  string
		profile *api.RiskProfile
		matches bool
		text    string
		wrong   string
	}{
		"empty": {"", riskProfile(api.RiskProfileSpec{}), false, `{"name":"desk-a"}`, ""},
		"all": {"", riskProfile(api.RiskProfileSpec{
			PriceDigits: ptr.To[int32](2), QuantityDigits: ptr.To[int32](0), TraderTag: ptr.To[int32](50), DeskTag: ptr.To[int32](57), AlgorithmTag: ptr.To[int32](58),
			MaxOrderVolume: "10000", MaxOrderValue: "1000000", PriceCollar: &api.RiskCollar{ReferenceBps: ptr.To[int32](1000), LastBps: ptr.To[int32](500), Least: "0.05"},
			MaxMessages: &api.RiskMessages{PerSecond: 100, Burst: ptr.To[int32](200), Reserve: ptr.To[int32](20)}, DuplicateWindow: &metav1.Duration{Duration: 1500 * time.Microsecond},
			RepeatedExecutions: &api.RiskRepeatedExecutions{Count: 5, Window: &metav1.Duration{Duration: time.Minute}},
			CreditThreshold:    &api.RiskCredit{Total: "9", Default: "1", Clients: []api.RiskClient{{Client: "A", Amount: "5"}}},
			ReferencePrices:    []api.RiskReferencePrice{{Symbol: "IBM", Price: "125.5"}}, RestrictedSymbols: []string{"XYZ"}, AuthorisedPersons: []string{"ann"},
		}), true, `{"name":"desk-a","priceDigits":2,"quantityDigits":0,"traderTag":50,"deskTag":57,"algorithmTag":58,"maxOrderVolume":"10000","maxOrderValue":"1000000",` +
			`"priceCollar":{"referenceBps":1000,"lastBps":500,"least":"0.05"},"maxMessages":{"perSecond":100,"burst":200,"reserve":20},"duplicateWindowMs":2,` +
			`"repeatedExecutions":{"count":5,"windowMs":60000},"creditThreshold":{"total":"9","default":"1","clients":[{"client":"A","amount":"5"}]},` +
			`"referencePrices":[{"symbol":"IBM","price":"125.5"}],"restrictedSymbols":["XYZ"],"authorisedPersons":["ann"]}`, ""},
		"changed":              {given, riskProfile(api.RiskProfileSpec{MaxOrderVolume: "11"}), false, `{"name":"desk-a","maxOrderVolume":"11"}`, ""},
		"too many digits":      {given, riskProfile(api.RiskProfileSpec{MaxOrderVolume: "1.5"}), false, given, "maxOrderVolume"},
		"needs executions":     {given, riskProfile(api.RiskProfileSpec{CreditThreshold: &api.RiskCredit{Total: "1"}}), false, given, "spec.execution.mode Match"},
		"wrong from the start": {"", riskProfile(api.RiskProfileSpec{MaxOrderVolume: "1.5"}), false, "", "maxOrderVolume"},
		"none":                 {given, nil, false, given, ""},
		"none, other before":   {strings.Replace(given, "desk-a", "desk-b", 1), nil, false, "", ""},
		"never one":            {"", nil, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			grid := limitedGrid()
			if c.matches {
				grid.Spec.Execution = matchingGrid().Spec.Execution
			}
			s := planLimits(sourcedFiles{plain: c.before}, grid, c.profile, time.UnixMilli(5000))
			if s.files.plain != c.text || s.missing != (c.profile == nil) || !strings.Contains(s.invalid, c.wrong) || (c.wrong == "") != (s.invalid == "") || (c.text == "") != (s.files.digests() == fileDigests{}) {
				t.Errorf("%+v\nwant %s", s, c.text)
			}
			sourced := ""
			if c.profile != nil && c.wrong == "" {
				sourced = c.text[:len(c.text)-1] + `,"source":{"grid":"` + string(grid.UID) + `","object":"u1","sinceMs":5000,"generation":3}}`
			}
			if s.files.sourced != sourced || s.begins != (sourced != "") {
				t.Errorf("with its source %s, begins %t, want %s", s.files.sourced, s.begins, sourced)
			}
		})
	}
}

// TestLimitsSource: later generations of a RiskProfile keep its beginning; another object begins later, whatever the clock is,
// and so does another text of the same generation; what a cache has that is behind is not given.
func TestLimitsSource(t *testing.T) {
	grid := limitedGrid()
	first := planLimits(sourcedFiles{}, grid, riskProfile(api.RiskProfileSpec{MaxOrderVolume: "10"}), time.UnixMilli(5000)).files
	for name, c := range map[string]struct {
		name, uid  string
		generation int64
		volume     string
		now        int64
		since      int64
	}{
		"the same":                {"desk-a", "u1", 3, "10", 9000, 5000},
		"later generation":        {"desk-a", "u1", 4, "11", 9000, 5000},
		"which is the same again": {"desk-a", "u1", 4, "10", 9000, 5000},
		"made anew":               {"desk-a", "u2", 1, "10", 9000, 9000},
		"another one":             {"desk-b", "u3", 1, "10", 9000, 9000},
		"by a clock set back":     {"desk-b", "u3", 1, "10", 1000, 5001},
		"other text":              {"desk-a", "u1", 3, "11", 9000, 9000},
		"cache is behind":         {"desk-a", "u1", 2, "9", 9000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			grid.Spec.RiskProfile.Name = c.name
			p := riskProfile(api.RiskProfileSpec{MaxOrderVolume: c.volume})
			p.Name, p.UID, p.Generation = c.name, types.UID(c.uid), c.generation
			s := planLimits(first, grid, p, time.UnixMilli(c.now))
			if c.since == 0 {
				if s.files != first || s.begins {
					t.Errorf("%+v, want what was given", s)
				}
				return
			}
			want := fmt.Sprintf(`{"name":"%s","maxOrderVolume":"%s","source":{"grid":"%s","object":"%s","sinceMs":%d,"generation":%d}}`, c.name, c.volume, grid.UID, c.uid, c.since, c.generation)
			if s.files.sourced != want || s.begins != (c.since != 5000) {
				t.Errorf("%s, begins %t, want %s", s.files.sourced, s.begins, want)
			}
			given, _ := limits.ParseProfile([]byte(first.sourced))
			made, err := limits.ParseProfile([]byte(s.files.sourced))
			if err != nil || s.files != first && !made.Source.Supersedes(given.Source) {
				t.Errorf("nodes would wait with %s, %v", s.files.sourced, err)
			}
		})
	}
	grid.Spec.RiskProfile.Name = "desk-a"
	if s := planLimits(first, grid, nil, time.UnixMilli(9000)); s.files != first {
		t.Errorf("without the RiskProfile %+v, want what was given", s)
	}
}

// TestLimitsCondition: the condition is of what the nodes report, and tells what to do.
func TestLimitsCondition(t *testing.T) {
	type nodes = map[string]*nodestatus.Limits
	files := sourcedFiles{sourced: "with its source", plain: "without"}
	newText, plainText, oldText := files.digests().sourced, files.digests().plain, "old"
	loaded := func() *nodestatus.Limits {
		return &nodestatus.Limits{SHA256: newText, Partitions: []nodestatus.PartitionLimits{{Partition: "p0", Name: "desk-a", SHA256: newText, Entry: 7}, {Partition: "p1", Name: "desk-a", SHA256: newText, Entry: 8}}}
	}
	for name, c := range map[string]struct {
		change     func(*observation, nodes)
		want, text string
	}{
		"none":        {func(o *observation, n nodes) { o.grid.Spec.RiskProfile = nil; clear(n) }, "/", ""},
		"loaded":      {func(*observation, nodes) {}, "True/Loaded", "RiskProfile desk-a is in force in 2 partitions"},
		"not asked":   {func(o *observation, _ nodes) { o.roomAsked = false }, "Unknown/NodesSilent", ""},
		"not looked":  {func(o *observation, _ nodes) { o.limits = nil }, "Unknown/NotLooked", ""},
		"not found":   {func(o *observation, _ nodes) { o.limits = &riskLimits{missing: true} }, "False/NotFound", "there is no RiskProfile desk-a in namespace"},
		"invalid":     {func(o *observation, _ nodes) { o.limits.invalid = "maxOrderVolume is 1.5" }, "False/Invalid", "is not given to the nodes: maxOrderVolume is 1.5; correct it"},
		"file is old": {func(_ *observation, n nodes) { n["rtd-s0-1"].SHA256 = oldText }, "True/Loaded", "in force in 2 partitions"},
		"no source, file is old": {func(_ *observation, n nodes) {
			for _, x := range n {
				x.Partitions[0].SHA256, x.Partitions[1].SHA256 = plainText, plainText
			}
			n["rtd-s0-1"].SHA256 = oldText
		}, "False/OnTheWay", "in force in 2 of 2 partitions: the file of rtd-s0-1"},
		"no source, files are new": {func(_ *observation, n nodes) {
			for _, x := range n {
				x.Partitions[0].SHA256, x.Partitions[1].SHA256 = plainText, plainText
			}
			n["rtd-s0-1"].SHA256 = plainText // of a release before
		}, "True/Loaded", "in force in 2 partitions"},
		"log is later": {func(_ *observation, n nodes) {
			n["rtd-s0-0"].Partitions[0].SHA256, n["rtd-s0-0"].Partitions[0].Waits = oldText, "the file has generation 5, and the log generation 7"
		}, "False/LaterInForce", "p0 on rtd-s0-0: the file has generation 5, and the log generation 7. To put that of the API server in force, delete the RiskProfile and create it anew"},
		"log is later than a late file": {func(_ *observation, n nodes) {
			n["rtd-s0-0"].SHA256, n["rtd-s0-0"].Partitions[0].Waits = oldText, "the file has generation 5, and the log generation 7"
		}, "True/Loaded", ""},
		"no file":      {func(_ *observation, n nodes) { n["rtd-s0-1"] = nil }, "True/Loaded", ""},
		"log is old":   {func(_ *observation, n nodes) { n["rtd-s0-1"].Partitions[0].SHA256 = "" }, "False/OnTheWay", "in force in 1 of 2 partitions: p0 on rtd-s0-1"},
		"no partition": {func(_ *observation, n nodes) { n["rtd-s0-0"].Partitions, n["rtd-s0-1"].Partitions = nil, nil }, "False/OnTheWay", "in force in 0 of 2 partitions"},
		"file refused": {func(_ *observation, n nodes) { n["rtd-s0-0"].Error = "it has 70000 bytes" }, "False/RefusedByNode", "rtd-s0-0: it has 70000 bytes"},
		"log refuses":  {func(_ *observation, n nodes) { n["rtd-s0-0"].Partitions[1].Refused = "digits" }, "False/RefusedByNode", "p1 on rtd-s0-0: digits"},
		"removed":      {func(o *observation, _ nodes) { o.grid.Spec.RiskProfile = nil }, "False/StillInForce", "name a RiskProfile with an empty spec"},
		"lifted": {func(o *observation, n nodes) {
			o.grid.Spec.RiskProfile = nil
			for _, x := range n {
				x.Partitions[0].Empty, x.Partitions[1].Empty = true, true
			}
		}, "/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := healthy()
			o.grid.Spec.RiskProfile = &api.RiskProfileReference{Name: "desk-a"}
			o.limits, o.roomAsked = &riskLimits{files: files}, true
			n := nodes{"rtd-s0-0": loaded(), "rtd-s0-1": loaded()}
			c.change(o, n)
			answers := []*nodestatus.Memory{}
			for _, pod := range []string{"rtd-s0-0", "rtd-s0-1"} {
				m := memoryOf(pod, 100, nil)
				m.Limits = n[pod]
				answers = append(answers, m)
			}
			o.room = roomOf(answers, len(answers))
			j := judgeLimits(o)
			if got := string(j.status) + "/" + j.reason; got != c.want || !strings.Contains(j.message, c.text) {
				t.Errorf("%s: %s\nwant %s: … %s", got, j.message, c.want, c.text)
			}
		})
	}
}

// TestLimitsReachNodes: no pod is made before its limits can be given to it; a change reaches the file, and one that the
// nodes would refuse does not.
func TestLimitsReachNodes(t *testing.T) {
	b := newBench(t)
	grid := b.create("rtd", api.OrderGridSpec{RiskProfile: &api.RiskProfileReference{Name: "desk-a"}})
	b.run(grid)
	b.wantCondition(grid, api.ConditionLimitsLoaded, metav1.ConditionFalse, reasonLimitsNotFound, "create it")
	b.wantCondition(grid, api.ConditionStalled, metav1.ConditionTrue, reasonUnguarded, "there is no RiskProfile desk-a")
	set := &appsv1.StatefulSet{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "rtd-s0"}, set); !apierrors.IsNotFound(err) {
		t.Errorf("pods are made without their limits: %v", err)
	}
	profile := riskProfile(api.RiskProfileSpec{MaxOrderVolume: "10"})
	profile.Namespace = b.namespace
	if err := b.client.Create(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	if reqs := b.reconcile.gridsOfProfile(t.Context(), profile); len(reqs) != 1 || reqs[0].Name != "rtd" {
		t.Errorf("a change of the profile is for %v", reqs)
	}
	file := func(want string) {
		t.Helper()
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "rtd.limits"}}
		b.get(m)
		if got := m.Data["limits.json"]; got != want {
			t.Errorf("the nodes are given %s, want %s", got, want)
		}
		source := fmt.Sprintf(`,"source":{"grid":"%s","object":"%s","sinceMs":`, grid.UID, profile.UID)
		if got := m.Data["limits.json.sourced"]; !strings.HasPrefix(got, want[:len(want)-1]+source) || !strings.HasSuffix(got, `,"generation":1}}`) {
			t.Errorf("those of this release are given %s, want %s…", got, want[:len(want)-1]+source)
		}
	}
	b.run(grid)
	file(`{"name":"desk-a","maxOrderVolume":"10"}`)
	if again := b.run(grid); len(again) > 0 {
		t.Errorf("a second pass writes %v", again)
	}
	profile.Spec.MaxOrderVolume = "1.5"
	if err := b.client.Update(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	b.run(grid)
	file(`{"name":"desk-a","maxOrderVolume":"10"}`)
	b.wantCondition(grid, api.ConditionLimitsLoaded, metav1.ConditionFalse, reasonLimitsInvalid, "maxOrderVolume")
	if args := strings.Join(nodeArgs(grid, 0), " "); !strings.Contains(args, " --limits /etc/ordergrid/limits/limits.json") {
		t.Error(args)
	}
}
