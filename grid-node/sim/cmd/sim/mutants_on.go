//go:build mutants

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/sim"
)

// bounds of the proof.
type bounds struct {
	caught, control uint64
	only            string
}

func mutantFlags(cmd *cobra.Command, o *options) {
	cmd.Flags().StringVar(&o.mutant, "mutant", "none", "break the protocol in this way; 'list' shows all")
	var b bounds
	proof := &cobra.Command{
		Use:   "mutants",
		Short: "Break the protocol in every known way, one at a time, and check that each is caught",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return prove(o, b) },
	}
	proof.Flags().Uint64Var(&b.caught, "bound", 8000, "seeds within which each has to be caught")
	proof.Flags().StringVar(&b.only, "only", "", "only this one")
	proof.Flags().Uint64Var(&b.control, "control", 400, "seeds that the correct protocol has to pass")
	cmd.AddCommand(proof)
}

func selectMutant(name string) error {
	if name == "list" {
		for _, m := range sim.Mutants() {
			fmt.Printf("%-26s %s\n", m.Name, m.Breaks)
		}
		os.Exit(0)
	}
	return sim.SelectMutant(name)
}

// prove runs seeds against every mutant until one fails, or its test, and prints the
// table.
func prove(o *options, b bounds) error {
	var errs []error
	tests := map[string]*testBinary{}
	for _, pkg := range []string{"machine", "replica"} {
		built, err := buildTests(pkg)
		if err != nil {
			return err
		}
		defer built.remove()
		tests[pkg] = built
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "mutant\tseeds\tcaught by\tworld\twhat it does")
	for i, m := range sim.Mutants() {
		if b.only != "" && b.only != m.Name {
			continue
		}
		if pkg, proof := replica.Proof(m.Name); proof != "" {
			if err := tests[pkg].prove(m.Name, proof); err != nil {
				errs = append(errs, err)
				fmt.Fprintf(w, "%s\t-\tNOTHING\t\t%s\n", m.Name, m.Breaks)
				continue
			}
			fmt.Fprintf(w, "%s\t-\t%s\t-\t%s\n", m.Name, strings.NewReplacer("^", "", "$", "").Replace(proof), m.Breaks)
			continue
		}
		if err := sim.SelectMutant(m.Name); err != nil {
			return err
		}
		bound := b.caught
		if i == 0 {
			bound = b.control
		}
		many := sim.Many{Seeds: bound, Pairs: sim.OfPairs(m.Name), Workers: o.workers, StopAfter: 1}
		if sim.OfMatch(m.Name) {
			many.World = sim.WorldMatch
		}
		if sim.OfJournal(m.Name) {
			many.World = sim.WorldJournal
		}
		sum := many.Run()
		switch {
		case i == 0 && len(sum.Failed) == 0:
			fmt.Fprintf(w, "%s\t%d\tnothing\tall\t%s\n", m.Name, sum.Seeds, m.Breaks)
		case i == 0:
			errs = append(errs, fmt.Errorf("the correct protocol fails seed %d: %w", sum.Failed[0].Seed, sum.Failed[0].Violation))
		case len(sum.Failed) == 0:
			fmt.Fprintf(w, "%s\t>%d\tNOBODY\t\t%s\n", m.Name, sum.Seeds, m.Breaks)
			errs = append(errs, fmt.Errorf("mutant %s survives %d seeds", m.Name, sum.Seeds))
		default:
			r := &sum.Failed[0]
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", m.Name, r.Seed+1, r.Violation.Invariant, r.Profile, m.Breaks)
			fmt.Fprintf(os.Stderr, "%s: seed %d, %.300s\n", m.Name, r.Seed, r.Violation.Error())
		}
	}
	return errors.Join(append(errs, w.Flush())...)
}
