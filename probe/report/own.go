package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// OwnSchema names the version of the Own encoding.
const OwnSchema = "ordergrid.dev/probe-own/v1"

// Files of an Own that every one has; others are pages and tables of single scenarios.
const (
	FileTable   = "table.txt"
	FileResults = "results.json" // of a scenario as it writes it, or a Suite
	FileCSV     = "results.csv"
	FilePage    = "report.html"
)

// Own is what a pod hands over that started the grids that it measured: the outcome of one scenario, or a Suite, which is
// then FileResults.
type Own struct {
	Schema  string            `json:"schema"`
	Outcome *Outcome          `json:"outcome,omitempty"`
	Files   map[string]string `json:"files"`
}

// Fit encodes it in at most so many bytes: where it takes more, pages and tables of single scenarios are left out, the
// longest first. left are their names.
func (o *Own) Fit(most int) (b []byte, left []string, err error) {
	fit := *o
	fit.Files = maps.Clone(o.Files)
	for {
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(&fit); err != nil {
			return nil, nil, err
		}
		if out.Len() <= most {
			return out.Bytes(), left, nil
		}
		longest := ""
		for _, name := range slices.Sorted(maps.Keys(fit.Files)) {
			if name != FileTable && name != FileResults && name != FileCSV && (longest == "" || len(fit.Files[name]) > len(fit.Files[longest])) {
				longest = name
			}
		}
		if longest == "" {
			return nil, nil, fmt.Errorf("result: %d bytes without its pages, at most %d are kept", out.Len(), most)
		}
		left = append(left, longest)
		delete(fit.Files, longest)
	}
}

// ParseOwn reads what Fit encoded. suite is nil of one scenario.
func ParseOwn(b []byte) (o *Own, suite *Suite, err error) {
	if len(b) > maxResult {
		return nil, nil, fmt.Errorf("result: %d bytes, at most %d are read", len(b), maxResult)
	}
	o = &Own{}
	if err := json.Unmarshal(b, o); err != nil {
		return nil, nil, fmt.Errorf("result: %w", err)
	}
	if o.Schema != OwnSchema {
		return nil, nil, fmt.Errorf("result: schema %q, this program reads %s; use an order-probe of the operator's version", o.Schema, OwnSchema)
	}
	for _, name := range []string{FileTable, FileResults, FileCSV} {
		if o.Files[name] == "" {
			return nil, nil, errors.New("result: it has no file " + name)
		}
	}
	if o.Outcome == nil {
		suite, err = ParseSuite([]byte(o.Files[FileResults]))
	}
	return o, suite, err
}

// Judgements are those of one scenario that judges by itself.
func (o *Outcome) Judgements() []Judgement { return judged(o.Run.Verdict, o.Run.Reason, o.Run.Control) }

func judged(verdict, reason, control string) []Judgement {
	correct, valid, shape := Judgement{Name: "CORRECT", Status: Pass, Detail: control}, Judgement{Name: "VALID", Status: Pass}, Judgement{Name: "SHAPE", Status: Pass, Detail: reason}
	switch verdict {
	case Incorrect:
		correct.Status, correct.Detail, valid.Status, shape.Status, shape.Detail = Fail, reason, NotJudged, NotJudged, ""
	case Invalid, Contended:
		correct.Status, valid.Status, valid.Detail, shape.Status, shape.Detail = NotJudged, verdict, reason, NotJudged, ""
	case Fail, NotJudged:
		shape.Status = verdict
	}
	return []Judgement{correct, valid, shape}
}

// Verdict is that of one scenario, as of a Report.
func (o *Outcome) Verdict() string { return reportVerdict(o.Run.Verdict) }

func reportVerdict(verdict string) string {
	switch verdict {
	case Incorrect:
		return ReportIncorrect
	case Invalid, Contended:
		return ReportInvalid
	}
	return ReportValid
}

// Verdict is the worst of the scenarios that ran, as of a Report, and how the published tables fared.
func (s *Suite) Verdict() (verdict, reason string) {
	verdict = ReportInvalid // of none
	for i, r := range s.Runs {
		switch v := reportVerdict(r.Verdict); {
		case i == 0 || v == ReportIncorrect:
			verdict = v
		case v == ReportInvalid && verdict == ReportValid:
			verdict = v
		}
	}
	return verdict, fmt.Sprintf("%d scenarios ran; of %d published tables: %s", len(s.Runs), len(s.Rows), strings.Join(s.Counts(), ", "))
}

// Judgements are those of all scenarios together: which of them are not right, not valid, or have another shape.
func (s *Suite) Judgements() []Judgement {
	all := judged(Pass, "", "")
	for i := range all {
		var names []string
		for _, r := range s.Runs {
			if one := judged(r.Verdict, "", "")[i]; one.Status != Pass && one.Status != NotJudged {
				all[i].Status = one.Status
				names = append(names, r.Scenario)
			}
		}
		all[i].Detail = fmt.Sprintf("%d of %d scenarios: %s", len(names), len(s.Runs), strings.Join(names, ", "))
		if len(names) == 0 {
			all[i].Detail = fmt.Sprintf("none of %d scenarios is against it", len(s.Runs))
		}
	}
	return all
}
