package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
)

func statusCommand(k *kubeFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "status GRID",
		Short:   "Show a grid's conditions and who serves each partition",
		Example: `  kubectl ordergrid status trades -n trading`,
		Args:    oneGrid,
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := k.connect()
			if err != nil {
				return err
			}
			og, err := cluster.grid(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			parts, err := cluster.partitions(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return writeStatus(cmd.OutOrStdout(), og, parts, time.Now())
		},
	}
}

func writeStatus(w io.Writer, og *v1alpha1.OrderGrid, parts []v1alpha1.GridPartition, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(t, "CONDITION\tSTATUS\tSINCE\tREASON\tMESSAGE\n")
	for _, c := range og.Status.Conditions {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", c.Type, c.Status, duration.HumanDuration(now.Sub(c.LastTransitionTime.Time)), c.Reason, c.Message)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	problems := map[string]string{}
	for _, p := range og.Status.Partitions {
		problems[p.Name] = p.Problem
	}
	fmt.Fprintf(t, "\nPARTITION\tPRIMARY\tIN SYNC\tWANTED\tEPOCH\tLINEAGE\tCHANGED\tPROBLEM\n")
	for i := range parts {
		p := &parts[i]
		primary, changed := "none", "never"
		if p.Status.Primary != nil {
			primary = p.Status.Primary.PodName
		}
		if p.Status.ObservedTime != nil {
			changed = duration.HumanDuration(now.Sub(p.Status.ObservedTime.Time)) + " ago"
		}
		var inSync []string
		for _, m := range p.Status.InSync {
			inSync = append(inSync, m.PodName)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", p.Name, primary, strings.Join(inSync, ","), p.Spec.Replicas, p.Status.Epoch, p.Status.Lineage, changed, cmp.Or(problems[p.Name], "none"))
	}
	return t.Flush()
}
