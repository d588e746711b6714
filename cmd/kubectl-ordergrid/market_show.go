package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// shownBook is a book with its state, and what the calendar has for it.
type shownBook struct {
	Symbol    string `json:"symbol"`
	Partition string `json:"partition"`
	State     string `json:"state"`
	Since     string `json:"since,omitempty"`
	Until     string `json:"until,omitempty"` // a halt ends then by itself
	// Phase is the one that the calendar has at present; Behind: the book has not entered it.
	Phase      string `json:"phase,omitempty"`
	PhaseSince string `json:"phaseSince,omitempty"`
	Behind     bool   `json:"behind,omitempty"`
	Next       string `json:"next,omitempty"`
	NextAt     string `json:"nextAt,omitempty"`
	Node       string `json:"node"` // that leads its partition
}

// show prints the books of a grid, or the one of a symbol.
func (f *marketFlags) show(cmd *cobra.Command, k *kubeFlags, grid, symbol string) error {
	switch {
	case f.output != "text" && f.output != "json":
		return usageError{fmt.Errorf("--output: value %q, allowed: text, json", f.output)}
	case f.reason != "" || f.duration != 0:
		return usageError{fmt.Errorf("--reason and --for are of a change, allowed: with halt, resume, open, close, call, uncross, band; see %s --help", cmd.CommandPath())}
	case len(f.endpoints) > 0:
		return usageError{fmt.Errorf("--endpoint: books are listed by the pages of nodes, allowed: --http host:port of their HTTP ports")}
	}
	targets, dial, err := targetsOf(cmd.Context(), k, grid, f.http, f.direct)
	if err != nil {
		return err
	}
	defer dial.close()
	books, failed := readBooks(cmd.Context(), targets, dial)
	for _, why := range failed {
		fmt.Fprintln(cmd.ErrOrStderr(), why)
	}
	if symbol != "" {
		books = slices.DeleteFunc(books, func(b shownBook) bool { return b.Symbol != symbol })
	}
	if f.output == "json" {
		err = indented(cmd.OutOrStdout(), books)
	} else {
		err = writeBooks(cmd.OutOrStdout(), books)
	}
	switch {
	case err != nil:
		return err
	case len(failed) > 0:
		return fmt.Errorf("%d of %d nodes did not answer: books of the partitions that they lead are missing", len(failed), len(targets))
	case symbol != "" && len(books) == 0:
		return fmt.Errorf("no node leads a partition with a book of %.40q; kubectl ordergrid market %s lists those there are", symbol, grid)
	}
	return nil
}

// readBooks asks each node for the books that it leads.
func readBooks(ctx context.Context, targets []target, dial way) (books []shownBook, failed []string) {
	c := nodestatus.NewClient(pageTime, dial.dialContext)
	books = []shownBook{}
	for _, t := range targets {
		page, err := nodestatus.GetBooks(ctx, c, t.address)
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", t.name, err))
			continue
		}
		for i := range page.Books {
			books = append(books, shownOf(page, &page.Books[i]))
		}
	}
	slices.SortFunc(books, func(a, b shownBook) int { return cmp.Or(cmp.Compare(a.Symbol, b.Symbol), cmp.Compare(a.Node, b.Node)) })
	return books, failed
}

func shownOf(page *nodestatus.Books, b *nodestatus.Book) shownBook {
	s := shownBook{Symbol: b.Symbol, Partition: b.Partition, State: b.State, Since: stampOf(b.SinceUnixNs), Until: stampOf(b.UntilUnixNs), Behind: b.Behind, Node: page.Pod}
	if c := page.Calendar; c != nil {
		s.Phase, s.PhaseSince, s.Next, s.NextAt = c.Phase, stampOf(c.PhaseUnixNs), c.Next, stampOf(c.NextUnixNs)
	}
	return s
}

// stampOf is a time as text, empty for 0.
func stampOf(unixNs int64) string {
	if unixNs == 0 {
		return ""
	}
	return time.Unix(0, unixNs).UTC().Format(time.RFC3339)
}

func writeBooks(out io.Writer, books []shownBook) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SYMBOL\tPARTITION\tSTATE\tSINCE\tUNTIL\tPHASE\tNEXT")
	for i := range books {
		b := &books[i]
		phase := strings.TrimSpace(b.Phase + " " + b.PhaseSince)
		if b.Behind {
			phase += " (not entered)"
		}
		next := strings.TrimSpace(b.Next + " " + b.NextAt)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", b.Symbol, b.Partition, b.State, cmp.Or(b.Since, "-"), cmp.Or(b.Until, "-"), cmp.Or(phase, "-"), cmp.Or(next, "-"))
	}
	return w.Flush()
}
