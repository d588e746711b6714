// Command chaosmesh installs Chaos Mesh on the cluster of this checkout, or the
// one CLUSTER names, and removes it.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/e2e/chaosmesh"
	"github.com/ordergrid/ordergrid/e2e/cluster"
	"github.com/ordergrid/ordergrid/internal/checkout"
	"github.com/ordergrid/ordergrid/internal/command"
	"github.com/ordergrid/ordergrid/probe/nodefeatures"
	"github.com/ordergrid/ordergrid/probe/report"
)

func main() { command.Main(newRoot()) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use: "chaosmesh", Short: "Chaos Mesh on the cluster of this checkout", SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(
		onCluster("install", "Install controller manager and daemon, and wait until they are ready", func(cmd *cobra.Command, m *chaosmesh.Mesh) error {
			return m.Install(cmd.Context())
		}),
		onCluster("uninstall", "End every fault and remove Chaos Mesh with its CRDs", func(cmd *cobra.Command, m *chaosmesh.Mesh) error {
			return m.Uninstall(cmd.Context())
		}),
		onCluster("status", "Print what runs and which faults there are; exit code 1 if it is not ready", status),
		probe(), binaries())
	return root
}

func onCluster(use, short string, do func(*cobra.Command, *chaosmesh.Mesh) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		root, err := checkout.Root()
		if err != nil {
			return err
		}
		o := cluster.Options{Root: root, Out: os.Stdout, Progress: os.Stderr}
		m, err := chaosmesh.Open(cmd.Context(), o, command.NewSteps(os.Stderr).Say)
		if err != nil {
			return err
		}
		return do(cmd, m)
	}}
}

func status(cmd *cobra.Command, m *chaosmesh.Mesh) error {
	state, err := m.Status(cmd.Context())
	if err != nil {
		return err
	}
	fmt.Println(state)
	if !state.Installed {
		return nil
	}
	faults, err := m.Faults(cmd.Context())
	if err != nil {
		return err
	}
	for _, f := range faults {
		fmt.Printf("%s %s/%s\n", f.GetKind(), f.GetNamespace(), f.GetName())
	}
	if !state.Ready() {
		return fmt.Errorf("not ready: %s", state)
	}
	return nil
}

func probe() *cobra.Command {
	var image string
	var asJSON bool
	cmd := onCluster("probe", "Print which faults each node's kernel supports", func(cmd *cobra.Command, m *chaosmesh.Mesh) error {
		reports, err := m.Nodes(cmd.Context(), image)
		if err != nil {
			return err
		}
		if asJSON {
			return json.NewEncoder(os.Stdout).Encode(reports)
		}
		return table(os.Stdout, reports)
	})
	cmd.Flags().StringVar(&image, "image", "ordergrid.dev/order-probe:dev", "an image of order-probe the nodes have or can pull")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// table has a row for each feature and a column for each node, then the reasons.
func table(out io.Writer, reports []nodefeatures.Report) error {
	head := []string{"FEATURE"}
	for i := range reports {
		head = append(head, reports[i].Node)
	}
	t := report.NewList(append(head, "what for, or why not")...)
	for _, name := range nodefeatures.Names() {
		cells, why := []any{name}, nodefeatures.Purpose(name)
		for i := range reports {
			word := "yes"
			if f := reports[i].Features[name]; !f.Supported {
				word, why = "no", f.Reason
			}
			cells = append(cells, word)
		}
		t.Add(append(cells, why)...)
	}
	return t.Text(out)
}

func binaries() *cobra.Command {
	return &cobra.Command{Use: "binaries", Short: "Build Chaos Mesh's programs and print their directory", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		root, err := checkout.Root()
		if err != nil {
			return err
		}
		dir, err := chaosmesh.Ensure(cmd.Context(), root, command.NewSteps(os.Stderr).Say)
		if err == nil {
			fmt.Println(dir)
		}
		return err
	}}
}
