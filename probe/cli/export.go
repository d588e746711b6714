package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/internal/plot"
	"github.com/ordergrid/ordergrid/probe/htmlreport"
	"github.com/ordergrid/ordergrid/probe/report"
)

// exportFlags select the files made of reports besides the printed output.
type exportFlags struct{ html, svg, png string }

func (f *exportFlags) register(set *pflag.FlagSet) {
	set.StringVar(&f.html, "html", "", "write one self-contained HTML file with tables and plots of all reports")
	set.StringVar(&f.svg, "svg", "", "write each plot as an SVG file into this directory")
	set.StringVar(&f.png, "png", "", "write each plot as a PNG file into this directory")
}

// pngScale is pixels for each of a plot's: sharp on paper and on dense screens.
const pngScale = 2

func (f *exportFlags) write(reports []*report.Report, cost []report.Cost) error {
	if f.html != "" {
		if err := writeFile(f.html, func(w io.Writer) error { return htmlreport.Write(w, reports, cost) }); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	for _, kind := range []struct {
		flag, dir string
		write     func(w io.Writer, d *plot.Drawing) error
	}{
		{"svg", f.svg, func(w io.Writer, d *plot.Drawing) error { return d.SVG(w) }},
		{"png", f.png, func(w io.Writer, d *plot.Drawing) error { return d.PNG(w, pngScale) }},
	} {
		if kind.dir == "" {
			continue
		}
		if err := os.MkdirAll(kind.dir, 0o755); err != nil { //nolint:gosec // results are public
			return fmt.Errorf("--%s: %w", kind.flag, err)
		}
		for _, rep := range reports {
			for _, fig := range htmlreport.Figures(rep) {
				name := filepath.Join(kind.dir, fmt.Sprintf("%s-%s.%s", rep.Scenario, fig.Name, kind.flag))
				if err := writeFile(name, func(w io.Writer) error { return kind.write(w, fig.File(rep)) }); err != nil {
					return fmt.Errorf("--%s: %w", kind.flag, err)
				}
			}
		}
	}
	return nil
}

func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
