package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Values of --output of the commands that list.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

var listFormats = []string{formatTable, formatWide, formatJSON, formatYAML}

// listFlags are those of commands that list.
type listFlags struct{ output string }

func (f *listFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.output, "output", "o", formatTable, strings.Join(listFormats, ", "))
	completeFlag(cmd, "output", fixedNames(listFormats...))
}

func (f *listFlags) check() error {
	if !slices.Contains(listFormats, f.output) {
		return usageError{fmt.Errorf("--output: value %q, allowed: %s", f.output, strings.Join(listFormats, ", "))}
	}
	return nil
}

// wide reports whether a table has all columns.
func (f *listFlags) wide() bool { return f.output == formatWide }

// encoded writes v as JSON or YAML; false where a table is wanted.
func (f *listFlags) encoded(w io.Writer, v any) (bool, error) {
	switch f.output {
	case formatJSON:
		enc := json.NewEncoder(w)
		enc.SetIndent("", "    ")
		return true, enc.Encode(v)
	case formatYAML:
		text, err := yaml.Marshal(v)
		if err == nil {
			_, err = w.Write(text)
		}
		return true, err
	}
	return false, nil
}

// objectList is what kubectl get prints for several objects.
type objectList struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Items      []runtime.Object `json:"items"`
}

// listOf sets the kind of every object: the API server omits it in the items of a list.
func listOf(objects ...runtime.Object) objectList {
	l := objectList{APIVersion: "v1", Kind: "List", Items: []runtime.Object{}}
	for _, o := range objects {
		kind := ""
		switch o.(type) {
		case *api.OrderGrid:
			kind = "OrderGrid"
		case *api.GridPartition:
			kind = "GridPartition"
		case *api.OrderProbe:
			kind = "OrderProbe"
		case *api.FailoverDrill:
			kind = "FailoverDrill"
		}
		o.GetObjectKind().SetGroupVersionKind(api.GroupVersion.WithKind(kind))
		l.Items = append(l.Items, o)
	}
	return l
}

// Colours of a terminal.
const (
	red    = "31"
	green  = "32"
	yellow = "33"
)

// cell of a table; its colour is for terminals only.
type cell struct{ text, color string }

// table lines its columns up. text/tabwriter would count the bytes of a colour as width.
type table struct {
	colors bool
	rows   [][]cell
}

// row adds a line; each value is a cell, or any printable value.
func (t *table) row(values ...any) {
	cells := make([]cell, len(values))
	for i, v := range values {
		if c, ok := v.(cell); ok {
			cells[i] = c
		} else {
			cells[i].text = fmt.Sprint(v)
		}
	}
	t.rows = append(t.rows, cells)
}

func (t *table) write(w io.Writer) error {
	var widths []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	var b strings.Builder
	for _, r := range t.rows {
		for i, c := range r {
			if t.colors && c.color != "" {
				b.WriteString("\x1b[" + c.color + "m" + c.text + "\x1b[0m")
			} else {
				b.WriteString(c.text)
			}
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+2))
			}
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// colorless is --no-color.
const colorless = "no-color"

// colors reports whether the output may have colours: on a terminal only, and not with NO_COLOR (https://no-color.org),
// TERM=dumb or --no-color.
func colors(cmd *cobra.Command) bool {
	off, err := cmd.Flags().GetBool(colorless)
	return err == nil && !off && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(cmd.OutOrStdout())
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
