package report

import (
	"strings"
	"testing"
)

func TestOwnFits(t *testing.T) {
	o := &Own{Schema: OwnSchema, Outcome: &Outcome{Run: SuiteRun{Scenario: "bar-load", Verdict: Pass}}, Files: map[string]string{
		FileTable: "t", FileResults: "{}", FileCSV: "c", FilePage: strings.Repeat("<p>", 1000), "stac-pair.txt": strings.Repeat("x", 500),
	}}
	for most, want := range map[int]string{1 << 20: "", 3000: FilePage, 400: FilePage + " stac-pair.txt"} {
		b, left, err := o.Fit(most)
		if err != nil || len(b) > most || strings.Join(left, " ") != want {
			t.Errorf("%d bytes: %d, left out %v, %v; want %q", most, len(b), left, err, want)
		}
		got, suite, err := ParseOwn(b)
		if err != nil || suite != nil || got.Outcome.Run.Scenario != "bar-load" || len(got.Files) != len(o.Files)-len(left) {
			t.Errorf("%d bytes: read %+v, %v", most, got, err)
		}
	}
	if _, _, err := o.Fit(100); err == nil || !strings.Contains(err.Error(), "without its pages, at most 100") {
		t.Errorf("100 bytes: %v", err)
	}
	for text, want := range map[string]string{
		"no JSON":                        "result: invalid character",
		`{"schema":"x"}`:                 `schema "x"`,
		`{"schema":"` + OwnSchema + `"}`: "it has no file table.txt",
		`{"schema":"` + OwnSchema + `","files":{"table.txt":"a","results.csv":"b","results.json":"{}"}}`: "suite: schema",
	} {
		if _, _, err := ParseOwn([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestOwnVerdicts(t *testing.T) {
	for verdict, want := range map[string]string{
		Pass:      "Valid PASS PASS PASS",
		Fail:      "Valid PASS PASS FAIL",
		NotJudged: "Valid PASS PASS not judged",
		Invalid:   "Invalid not judged INVALID not judged",
		Contended: "Invalid not judged INVALID-CONTENDED not judged",
		Incorrect: "Incorrect FAIL not judged not judged",
	} {
		o := &Outcome{Run: SuiteRun{Verdict: verdict, Reason: "why", Control: "found"}}
		words := []string{o.Verdict()}
		for _, j := range o.Judgements() {
			words = append(words, j.Status)
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%s: %s, want %s", verdict, got, want)
		}
	}
	for runs, want := range map[string]string{
		"":                     "Invalid PASS PASS PASS",
		"PASS FAIL":            "Valid PASS PASS FAIL",
		"PASS INVALID FAIL":    "Invalid PASS INVALID FAIL",
		"INVALID INCORRECT":    "Incorrect FAIL INVALID PASS",
		"INCORRECT PASS":       "Incorrect FAIL PASS PASS",
		"INVALID PASS INVALID": "Invalid PASS INVALID PASS",
	} {
		s := &Suite{Rows: []SuiteRow{{Verdict: Pass}, {Verdict: NotRun}}}
		for verdict := range strings.FieldsSeq(runs) {
			if verdict == "INCORRECT" {
				verdict = Incorrect
			}
			s.Runs = append(s.Runs, SuiteRun{Scenario: "s", Verdict: verdict})
		}
		verdict, reason := s.Verdict()
		words := []string{verdict}
		for _, j := range s.Judgements() {
			words = append(words, j.Status)
		}
		if got := strings.Join(words, " "); got != want || !strings.Contains(reason, "of 2 published tables: 1 PASS, 1 not run") {
			t.Errorf("%q: %s, %s; want %s", runs, got, reason, want)
		}
	}
}
