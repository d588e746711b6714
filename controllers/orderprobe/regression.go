package orderprobe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aclements/go-moremath/stats"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Reasons of the condition Regressed.
const (
	reasonSlower     = "Slower"
	reasonSteady     = "Steady"
	reasonTooFewRuns = "TooFewRuns"
)

// A series has regressed when the latest runs are slower than those before by a test that asks how likely such ranks are
// by chance (Mann and Whitney's, one-sided), and by more than what a person would call noise. One run proves nothing:
// three against five is the fewest that can (1 in 56).
const (
	latestRuns   = 3
	earlierRuns  = 5  // at the least
	chance       = 40 // at most 1 in 40, for each of the two figures
	slowerByPct  = 5
	comparedRuns = 20 // before the latest, at most
)

// compared are the figures of a series, at the highest rate that all compared runs have.
var compared = []string{"c2e p50", "c2e p99"}

// regressed judges the runs of a series, the latest first. Only valid runs count.
func regressed(members []api.OrderProbe) metav1.Condition {
	c := metav1.Condition{Type: api.ConditionRegressed, Status: metav1.ConditionUnknown, Reason: reasonTooFewRuns}
	var valid []*api.OrderProbe
	for i := range members {
		if done(&members[i]) && members[i].Status.Verdict == api.VerdictValid && len(valid) < latestRuns+comparedRuns {
			valid = append(valid, &members[i])
		}
	}
	if len(valid) < latestRuns+earlierRuns {
		c.Message = fmt.Sprintf("%d valid runs; a comparison needs %d: the latest %d against %d before them", len(valid), latestRuns+earlierRuns, latestRuns, earlierRuns)
		return c
	}
	c.Status, c.Reason = metav1.ConditionFalse, reasonSteady
	var texts []string
	for _, metric := range compared {
		rate, values := commonFigures(valid, metric)
		if rate == 0 {
			continue
		}
		latest, before := values[:latestRuns], values[latestRuns:]
		was, is := median(before), median(latest)
		test, err := stats.MannWhitneyUTest(latest, before, stats.LocationGreater)
		if err != nil { // all runs are equal
			continue
		}
		texts = append(texts, fmt.Sprintf("%s at %d/s: median %s us of the latest %d, %s us of %d before them (%+.0f %%, p = %.3f)",
			metric, rate, decimal(is), latestRuns, decimal(was), len(before), 100*(is/was-1), test.P))
		if test.P <= 1.0/chance && is > was*(1+slowerByPct/100.0) {
			c.Status, c.Reason = metav1.ConditionTrue, reasonSlower
		}
	}
	c.Message = strings.Join(texts, "; ")
	if c.Message == "" {
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, reasonTooFewRuns, "the runs have no rate in common at which all are valid"
	}
	return c
}

// commonFigures returns a metric in microseconds of each run, at the highest rate at which all have it; 0 if there is none.
func commonFigures(runs []*api.OrderProbe, metric string) (rate int, values []float64) {
	of := make([]map[int]float64, len(runs))
	for i, run := range runs {
		of[i] = map[int]float64{}
		for _, row := range run.Status.Rows {
			r, err1 := strconv.Atoi(row.Rate)
			v, err2 := strconv.ParseFloat(row.Here, 64)
			if row.Metric == metric && row.Unit == "us" && row.Pairs == "" && err1 == nil && err2 == nil {
				of[i][r] = v
			}
		}
	}
	for r := range of[0] {
		if r > rate && !slices.ContainsFunc(of, func(m map[int]float64) bool { _, has := m[r]; return !has }) {
			rate = r
		}
	}
	for _, m := range of {
		values = append(values, m[rate])
	}
	return rate, values
}

func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
