package boards

import (
	"os"
	"path/filepath"

	"github.com/ordergrid/ordergrid/internal/derived"
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
	return want.Update(root, verify, filepath.Join(Dashboards, "*.json"), filepath.Join(chartJSON, "*.json"))
}

// files are all derived files by their path below root.
func files(root string) (derived.Files, error) {
	made, err := Files()
	if err != nil {
		return nil, err
	}
	want := derived.Files{}
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
