package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/ordergrid/ordergrid/grid-node/node"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// viewFlags are those of the views that questions are asked of.
type viewFlags struct {
	memory       string
	rows, values int
	index        []string
	copies       string
}

func (f *viewFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.memory, "views", "0", "memory of a node for views of orders, which clients may ask questions of, taken from what --memory-limit leaves to orders: 0 none, or 128Mi and more, about 90Mi for each partition of the node with the usual --view-rows")
	fl.StringVar(&f.copies, "view-copies", "all", "which copies of a partition keep its view: all, or backup, in which a primary keeps none while another copy is in sync")
	fl.IntVar(&f.rows, "view-rows", 0, "entries of a partition that are in its view at a time; default 1048576")
	fl.IntVar(&f.values, "view-values", 0, "distinct texts of a column of a view; default 65536")
	fl.StringSliceVar(&f.index, "order-index", nil, "TAG:KIND[:NAME], a further column of views: a FIX tag, text, decimal or time, and the name that it has in answers; text is found without a scan by equality, the others by ranges. Repeat or separate by commas")
}

// options returns nil without views.
func (f *viewFlags) options() (*node.Views, error) {
	q, err := resource.ParseQuantity(f.memory)
	if err != nil || q.Value() < 0 {
		return nil, fmt.Errorf("--views: value %q, allowed: a quantity such as 0, 128Mi or 1Gi", f.memory)
	}
	switch {
	case f.copies != "all" && f.copies != "backup":
		return nil, fmt.Errorf("--view-copies: value %q, allowed: all, backup", f.copies)
	case q.Value() == 0 && (f.rows != 0 || f.values != 0 || len(f.index) > 0):
		return nil, fmt.Errorf("--views: value 0, allowed: 128Mi and more with --view-rows, --view-values and --order-index")
	case q.Value() == 0:
		return nil, nil
	}
	v := &node.Views{Memory: q.Value(), Rows: f.rows, Values: f.values, OnBackups: f.copies == "backup"}
	for _, text := range f.index {
		x, err := view.ParseExtra(text)
		if err != nil {
			return nil, fmt.Errorf("--order-index: %w", err)
		}
		v.Extra = append(v.Extra, x)
		if x.Kind == view.Text {
			v.Postings = append(v.Postings, view.Field(x.Tag))
		} else {
			v.Ordered = append(v.Ordered, view.Field(x.Tag))
		}
	}
	if len(v.Extra) > 0 {
		v.Postings = slices.Concat([]view.Field{view.Symbol, view.Account}, v.Postings)
		v.Ordered = slices.Concat([]view.Field{view.Price}, v.Ordered)
	}
	return v, nil
}

// args are the flags for a node.
func (f *viewFlags) args() []string {
	args := []string{"--views", f.memory, "--view-rows", strconv.Itoa(f.rows), "--view-values", strconv.Itoa(f.values), "--view-copies", f.copies}
	if len(f.index) > 0 {
		args = append(args, "--order-index", strings.Join(f.index, ","))
	}
	return args
}
