package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ordergrid/ordergrid/e2e/cluster"
	"github.com/ordergrid/ordergrid/e2e/cluster/local"
	"github.com/ordergrid/ordergrid/internal/checkout"
	"github.com/ordergrid/ordergrid/internal/command"
)

// app holds what the subcommands share.
type app struct {
	asked string // --cluster
}

// open chooses the cluster and returns it; announce prints which and why.
func (a *app) open(ctx context.Context, announce bool) (cluster.Cluster, cluster.Kind, error) {
	root, err := checkout.Root()
	if err != nil {
		return nil, "", err
	}
	kind, why, err := cluster.Choose(ctx, root, a.asked)
	if err != nil {
		return nil, "", err
	}
	if announce {
		fmt.Fprintf(os.Stderr, "cluster: %s (%s)\n", kind, why)
	}
	c, err := cluster.Open(kind, cluster.Options{Root: root, Out: os.Stdout, Progress: os.Stderr})
	return c, kind, err
}

func (a *app) up() *cobra.Command {
	var nodes int
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring the cluster up, or whatever of it is down",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.open(cmd.Context(), true)
			if err != nil {
				return err
			}
			return c.Up(cmd.Context(), nodes)
		},
	}
	cmd.Flags().IntVar(&nodes, "nodes", 0, "number of workers, two of every three in the Xeon pool (default 3 local, 2 kind)")
	return cmd
}

func (a *app) down() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove the cluster and everything it left on this machine",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.open(cmd.Context(), true)
			if err != nil {
				return err
			}
			return c.Down(cmd.Context())
		},
	}
}

func (a *app) status() *cobra.Command {
	var leaks bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Print the cluster's machines, addresses and files",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, kind, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			if leaks {
				return reportLeaks(cmd.Context(), c, kind)
			}
			return c.Status(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&leaks, "leaks", false, "after down: list everything left on this machine and exit 1 if there is anything")
	return cmd
}

func reportLeaks(ctx context.Context, c cluster.Cluster, kind cluster.Kind) error {
	checker, ok := c.(cluster.LeakChecker)
	if !ok {
		return fmt.Errorf("--leaks is for local clusters; this one is %s", kind)
	}
	left := checker.Leaks(ctx)
	if len(left) == 0 {
		fmt.Println("nothing is left of this checkout's cluster")
		return nil
	}
	fmt.Println(strings.Join(left, "\n"))
	return fmt.Errorf("%d things of this checkout's cluster are on this machine; remove them with: make cluster-down", len(left))
}

func (a *app) kubeconfig() *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the cluster's kubeconfig",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, _, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			path, err := c.Kubeconfig(cmd.Context())
			if err == nil {
				fmt.Println(path)
			}
			return err
		},
	}
}

func (a *app) load() *cobra.Command {
	return &cobra.Command{
		Use:   "load IMAGE.tar...",
		Short: "Put images from docker archives on every node",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, archives []string) error {
			c, _, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			return c.Load(cmd.Context(), archives...)
		},
	}
}

func (a *app) node() *cobra.Command {
	node := &cobra.Command{Use: "node", Short: "Break a node, or make it whole again"}
	verbs := []struct {
		name, short string
		do          func(cluster.Machines, context.Context, string) error
	}{
		{"kill", "Cut the node's power: all in its memory is lost", cluster.Machines.KillNode},
		{"start", "Switch the node on and wait until it is ready", cluster.Machines.StartNode},
		{"cut", "Pull the node's network cable; it keeps running", cluster.Machines.CutNode},
		{"heal", "Plug the node's network cable in again", cluster.Machines.HealNode},
	}
	for _, verb := range verbs {
		node.AddCommand(&cobra.Command{
			Use:   verb.name + " NAME",
			Short: verb.short,
			Args:  cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				machines, err := a.machines(cmd.Context())
				if err != nil {
					return err
				}
				return verb.do(machines, cmd.Context(), args[0])
			},
		})
	}
	return node
}

func (a *app) machines(ctx context.Context) (cluster.Machines, error) {
	c, kind, err := a.open(ctx, false)
	if err != nil {
		return nil, err
	}
	return cluster.MachinesOf(c, kind)
}

func (a *app) exec() *cobra.Command {
	return &cobra.Command{
		Use:   "exec NODE -- COMMAND...",
		Short: "Run a command on a node, as a shell there would",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			machines, err := a.machines(cmd.Context())
			if err != nil {
				return err
			}
			return machines.Exec(cmd.Context(), args[0], args[1:])
		},
	}
}

func (a *app) outside() *cobra.Command {
	return &cobra.Command{
		Use:   "outside -- COMMAND...",
		Short: "Run a command where clients outside of the cluster are",
		Long: `Run a command where the machines' own addresses are reached, and neither pods nor
services: as on a computer beside them. This machine is such a place for a cluster that
has no other (kind, current), unless it has routes to pods.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, _, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			if outside, ok := c.(cluster.Outside); ok {
				return outside.RunOutside(cmd.Context(), args)
			}
			here := exec.CommandContext(cmd.Context(), args[0], args[1:]...)
			here.Stdin, here.Stdout, here.Stderr = os.Stdin, os.Stdout, os.Stderr
			return here.Run()
		},
	}
}

func (a *app) fabric() *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "fabric",
		Short: "Add a second network between the nodes, which pods get from Multus",
		Long: `Add a second network between the nodes of a cluster that is up, and Multus, which puts
pods on it that ask for it: by a NetworkAttachmentDefinition called "fabric" without
spec.config, in any namespace, and the annotation k8s.v1.cni.cncf.io/networks.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, kind, err := a.open(cmd.Context(), true)
			if err != nil {
				return err
			}
			fabric, ok := c.(cluster.Fabric)
			switch {
			case !ok:
				return fmt.Errorf("a second network can be added to a local cluster; this one is %s: install Multus in it and create a NetworkAttachmentDefinition", kind)
			case remove:
				return fabric.FabricDown(cmd.Context())
			}
			return fabric.FabricUp(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&remove, "remove", false, "take it away again")
	return cmd
}

func (a *app) binaries() *cobra.Command {
	var dirOnly bool
	cmd := &cobra.Command{
		Use:   "binaries",
		Short: "Build Kubernetes, etcd, CoreDNS and helm into the cache, unless they are there",
		Long:  "Build into the cache, unless they are there: " + local.ProgramNames() + ".\nThe directory can serve as KUBEBUILDER_ASSETS.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := checkout.Root()
			if err != nil {
				return err
			}
			var dir string
			if dirOnly {
				dir, err = local.ProgramsDir(cmd.Context(), root)
			} else {
				dir, err = local.EnsurePrograms(cmd.Context(), root, command.NewSteps(os.Stderr).Say)
			}
			if err == nil {
				fmt.Println(dir)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&dirOnly, "dir", false, "print the directory only, build nothing")
	return cmd
}

var errNoImage = errors.New("name an image or give --all")
