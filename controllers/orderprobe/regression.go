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
// three against five is the fewest that can (1 in 56). The more figures, the less likely each has to be: of 20 one in 400,
// which takes 15 runs.
const (
	latestRuns   = 3
	earlierRuns  = 5  // at the least
	chance       = 40 // at most 1 in 40, for each of two figures; of more, as much for all together
	slowerByPct  = 5
	comparedRuns = 20 // before the latest, at most
)

// compared are the figures of a series of a scenario that puts orders on a grid, at the highest rate that all compared runs
// have. Of other scenarios all figures are compared that have a direction.
var compared = []string{"c2e p50", "c2e p99"}

// figure is one of a series, in its runs, the latest first.
type figure struct {
	name, unit string
	values     []float64
	more       bool // more of it is better
}

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
	figures := inCommon(valid)
	allowed := 2.0 / (chance * float64(max(2, len(figures))))
	if len(figures) == 0 {
		c.Message = "the runs have no figure in common that is valid in all, and has a rate or a time"
		return c
	}
	if needed := runsFor(allowed); len(valid) < needed {
		c.Message = fmt.Sprintf("%d valid runs; %d figures need %d, so that chance has no more in all of them than in two", len(valid), len(figures), needed)
		return c
	}
	return compare(c, figures, allowed)
}

// compare judges figures, each of which chance may make worse this often.
func compare(c metav1.Condition, figures []figure, allowed float64) metav1.Condition {
	c.Status, c.Reason = metav1.ConditionFalse, reasonSteady
	var slower, steady []string
	for _, f := range figures {
		latest, before := f.values[:latestRuns], f.values[latestRuns:]
		was, is := median(before), median(latest)
		worse, limit := stats.LocationGreater, is > was*(1+slowerByPct/100.0)
		if f.more {
			worse, limit = stats.LocationLess, is < was*(1-slowerByPct/100.0)
		}
		test, err := stats.MannWhitneyUTest(latest, before, worse)
		if err != nil { // all runs are equal
			continue
		}
		text := fmt.Sprintf("%s: median %s of the latest %d, %s of %d before them (%+.0f %%, p = %.3f)",
			f.name, strings.TrimSpace(decimal(is)+" "+f.unit), latestRuns, strings.TrimSpace(decimal(was)+" "+f.unit), len(before), 100*(is/was-1), test.P)
		if test.P <= allowed && limit {
			c.Status, c.Reason = metav1.ConditionTrue, reasonSlower
			slower = append(slower, text)
			continue
		}
		steady = append(steady, text)
	}
	c.Message = strings.Join(append(slower, steady...), "; ")
	if c.Message == "" {
		c.Message = fmt.Sprintf("%d figures are the same in all runs", len(figures))
	}
	return c
}

// runsFor is how many runs there have to be for the latest ones to be this unlikely: in one of so many orders of ranks.
func runsFor(allowed float64) int {
	for n := latestRuns + earlierRuns; ; n++ {
		if orders := float64(n*(n-1)*(n-2)) / 6; 1/orders <= allowed || n == latestRuns+comparedRuns {
			return n
		}
	}
}

// inCommon are the figures that are valid in all runs.
func inCommon(runs []*api.OrderProbe) (out []figure) {
	if !runs[0].Spec.Scenario.OwnGrids() {
		for _, metric := range compared {
			if rate, values := commonFigures(runs, metric); rate > 0 {
				out = append(out, figure{name: fmt.Sprintf("%s at %d/s", metric, rate), unit: "us", values: values})
			}
		}
		return out
	}
	for _, row := range runs[0].Status.Rows {
		more, directed := direction(row)
		f := figure{name: strings.TrimSpace(row.Rate + " " + row.Metric), unit: row.Unit, more: more}
		for _, run := range runs {
			i := slices.IndexFunc(run.Status.Rows, func(o api.ProbeRow) bool { return o.Rate == row.Rate && o.Metric == row.Metric && o.Unit == row.Unit })
			if i < 0 {
				break
			}
			v, err := strconv.ParseFloat(run.Status.Rows[i].Here, 64)
			if err != nil || v <= 0 {
				break
			}
			f.values = append(f.values, v)
		}
		if directed && len(f.values) == len(runs) {
			out = append(out, f)
		}
	}
	return out
}

// direction reports whether more of a figure is better, and whether it has a direction at all: a ratio has none.
func direction(row api.ProbeRow) (more, directed bool) {
	if seconds[row.Unit] != 0 {
		return false, true
	}
	first, _, _ := strings.Cut(row.Metric, ",")
	return true, row.Unit == "" && !strings.Contains(row.Metric, " by ") && slices.ContainsFunc([]string{"rows/s", "orders/s", "TPS", "read TPS"}, func(s string) bool { return s == first })
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
