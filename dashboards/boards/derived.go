package boards

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
)

// Places below the top of the checkout.
const (
	Dashboards = "dashboards"                               // *.json
	Rules      = "dashboards/rules/ordergrid.rules.yaml"    // written by hand
	chartFiles = "charts/ordergrid/files"                   // what the chart embeds
	chartRules = chartFiles + "/rules/ordergrid.rules.yaml" // a copy of Rules
	chartJSON  = chartFiles + "/dashboards"                 // a copy of every dashboard
)

// WriteDerived updates the derived files of the checkout at root, and names those that were outdated. With verify it changes
// nothing. A JSON file without a dashboard is removed.
func WriteDerived(root string, verify bool) (drifted []string, err error) {
	want, err := files(root)
	if err != nil {
		return nil, err
	}
	stale, err := extra(root, want)
	if err != nil {
		return nil, err
	}
	for name, data := range want {
		path := filepath.Join(root, name)
		have, err := os.ReadFile(path)
		if err == nil && bytes.Equal(have, data) {
			continue
		}
		drifted = append(drifted, name)
		if verify {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return nil, err
		}
	}
	for _, name := range stale {
		drifted = append(drifted, name)
		if !verify {
			if err := os.Remove(filepath.Join(root, name)); err != nil {
				return nil, err
			}
		}
	}
	slices.Sort(drifted)
	return drifted, nil
}

// files are all derived files by their path below root.
func files(root string) (map[string][]byte, error) {
	made, err := Files()
	if err != nil {
		return nil, err
	}
	want := map[string][]byte{}
	for _, f := range made {
		want[filepath.Join(Dashboards, f.Name)] = f.Data
		want[filepath.Join(chartJSON, f.Name)] = f.Data
	}
	rules, err := os.ReadFile(filepath.Join(root, Rules))
	if err != nil {
		return nil, err
	}
	want[chartRules] = rules
	return want, nil
}

// extra lists JSON files beside the derived ones without a source.
func extra(root string, want map[string][]byte) (names []string, err error) {
	for _, dir := range []string{Dashboards, chartJSON} {
		found, err := filepath.Glob(filepath.Join(root, dir, "*.json"))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			name, err := filepath.Rel(root, path)
			if err != nil {
				return nil, err
			}
			if want[name] == nil {
				names = append(names, name)
			}
		}
	}
	return names, nil
}
