package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/ordergrid/ordergrid/dashboards/grafana"
	"github.com/ordergrid/ordergrid/dashboards/preview"
	"github.com/ordergrid/ordergrid/probe/report"
)

// result is every answer, board by board: with all variables at All, and with every value chosen by name.
type result struct {
	boards []*grafana.Dashboard
	all    map[*grafana.Dashboard][]preview.Answer
	named  map[*grafana.Dashboard][]preview.Answer
	window preview.Window
}

func askAll(c *preview.Client, boards []*grafana.Dashboard, w preview.Window) (*result, error) {
	r := &result{boards: boards, all: map[*grafana.Dashboard][]preview.Answer{}, named: map[*grafana.Dashboard][]preview.Answer{}, window: w}
	for _, d := range boards {
		all, named, err := preview.Choose(c, d, w)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Title, err)
		}
		r.all[d], r.named[d] = preview.AskBoard(c, d, all, w), preview.AskBoard(c, d, named, w)
	}
	return r, nil
}

// write leaves the list of panels and their answers.
func (r *result) write(dir string) error {
	var b strings.Builder
	t := report.NewList("dashboard", "panel", "query", "series", "sample", "expression")
	for _, d := range r.boards {
		for _, a := range r.all[d] {
			s, v := a.Last()
			sample := "EMPTY"
			switch {
			case a.Err != nil:
				sample = "ERROR: " + a.Err.Error()
			case v.Histogram != nil:
				sample = fmt.Sprintf("%d buckets, %.4g/s", len(v.Histogram), v.Value)
			case !math.IsNaN(v.Value):
				sample = fmt.Sprintf("%.6g", v.Value)
			}
			if name := a.Name(s); a.Err == nil && name != "" {
				sample += " (" + name + ")"
			}
			t.Add(strings.TrimPrefix(d.Title, "OrderGrid / "), a.Title, a.RefID, len(a.Series), sample, a.Expr)
		}
	}
	if err := t.Text(&b); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "panels.txt"), []byte(b.String()), 0o644)
}

// draw leaves a picture of every dashboard, as SVG and as PNG.
func (r *result) draw(dir string) error {
	for _, d := range r.boards {
		picture := preview.Page(d, r.all[d], r.window)
		name := filepath.Join(dir, strings.TrimPrefix(d.UID, "ordergrid-"))
		for ext, write := range map[string]func(io.Writer) error{".svg": picture.SVG, ".png": func(w io.Writer) error { return picture.PNG(w, 1) }} {
			f, err := os.Create(name + ext)
			if err != nil {
				return err
			}
			if err := errors.Join(write(f), f.Close()); err != nil {
				return fmt.Errorf("%s%s: %w", name, ext, err)
			}
		}
	}
	return nil
}

// verdict names every query that failed or had an empty answer.
func (r *result) verdict(say func(string, ...any)) error {
	queries, bad := 0, 0
	for _, d := range r.boards {
		panels := map[string]bool{}
		for i, list := range [][]preview.Answer{r.all[d], r.named[d]} {
			for _, a := range list {
				queries++
				panels[a.Title] = true
				if a.Err != nil {
					bad++
					say("%s | %s | %s (%s): %v\n      %s", d.Title, a.Title, a.RefID, []string{"All", "chosen by name"}[i], a.Err, a.Expr)
				}
			}
		}
		say("%s: %d panels and marks, %d queries, each with All and with every value by name", d.Title, len(panels), len(r.all[d]))
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d queries failed or showed nothing", bad, queries)
	}
	say("all %d queries answered", queries)
	return nil
}
