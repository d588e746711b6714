package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/plan"
)

// completeTime bounds the wait of a shell for the API server when Tab is pressed.
const completeTime = 3 * time.Second

// completionScript is what kubectl runs for the words after "kubectl ordergrid": it passes them to the plugin.
const completionScript = `#!/bin/sh
# Shell completion of kubectl ordergrid. kubectl looks for this file on PATH under the name kubectl_complete-ordergrid.
exec kubectl ordergrid __complete "$@"
`

func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion",
		Short: "Print the script that makes Tab work after kubectl ordergrid",
		Long: `Prints a script for a file called kubectl_complete-ordergrid, in any folder on PATH. kubectl (1.26 or later) calls it for
completions of "kubectl ordergrid", in every shell that kubectl's own completion is set up for ("kubectl completion
--help"). Commands, flags and their values are completed, and the names of grids, partitions, pods, nodes, drills,
probes, suites and scenarios.`,
		Example: `  kubectl ordergrid completion > ~/bin/kubectl_complete-ordergrid && chmod +x ~/bin/kubectl_complete-ordergrid`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), completionScript)
			return err
		},
	}
}

// namer lists the possible words.
type namer func(ctx context.Context, c *cluster) ([]string, error)

// completer is cobra's function for the values of an argument or flag.
type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// fixedNames completes words that need no cluster.
func fixedNames(names ...string) completer {
	return func(_ *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
		return beginning(names, begin), cobra.ShellCompDirectiveNoFileComp
	}
}

func beginning(names []string, begin string) (out []string) {
	for _, n := range names {
		if strings.HasPrefix(n, begin) {
			out = append(out, n)
		}
	}
	return out
}

// names completes words from the API server. Without it there are no completions and no error.
func (k *kubeFlags) names(list namer) completer {
	return func(cmd *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
		c, err := k.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		names, err := list(ctx, c)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return beginning(names, begin), cobra.ShellCompDirectiveNoFileComp
	}
}

// first completes the first argument only.
func first(f completer) completer {
	return func(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, begin)
	}
}

// completeFlag registers the values of a flag. An unknown flag is a bug.
func completeFlag(cmd *cobra.Command, flag string, f completer) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}

func gridNames(ctx context.Context, c *cluster) (names []string, err error) {
	var list api.OrderGridList
	err = c.own.Get().Namespace(c.namespace).Resource("ordergrids").Do(ctx).Into(&list)
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, err
}

func partitionNames(ctx context.Context, c *cluster) (names []string, err error) {
	var list api.GridPartitionList
	err = c.own.Get().Namespace(c.namespace).Resource("gridpartitions").Do(ctx).Into(&list)
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, err
}

func suiteNames() (names []string) {
	for _, s := range plan.Suites() {
		names = append(names, string(s.Name))
	}
	return names
}

// completions registers the completions of all commands below root.
func completions(root *cobra.Command, k *kubeFlags) {
	arguments := map[string]completer{
		"GRID": k.names(gridNames), "PARTITION": k.names(partitionNames), "SUITE": fixedNames(suiteNames()...), "[NAME]": fixedNames(suiteNames()...),
	}
	named := map[string]completer{drillKind.command: k.names(drillKind.names), probeKind.command: k.names(probeKind.names)}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if words := strings.Fields(cmd.Use); len(words) > 1 && cmd.ValidArgsFunction == nil {
			f := arguments[words[1]]
			if words[1] == "NAME" {
				f = named[cmd.Parent().Name()]
			}
			if f != nil {
				cmd.ValidArgsFunction = first(f)
			}
		}
		if cmd.Flags().Lookup("grid") != nil {
			completeFlag(cmd, "grid", k.names(gridNames))
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(root)
}
