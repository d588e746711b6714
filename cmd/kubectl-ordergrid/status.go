package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
)

func statusCommand(k *kubeFlags) *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "status GRID",
		Short: "Show a grid's conditions and the members of each partition",
		Long: `Shows the conditions of an OrderGrid and the configuration record of each partition: from the API
server. No node is queried; "kubectl ordergrid partitions" queries the progress of the copies.

-o wide adds the primary's address and the preferred pod; -o json and yaml print the objects themselves, as a List.

Exit codes: 0, 2 wrong usage, 4 failed.`,
		Example: `  kubectl ordergrid status trades -n trading
  kubectl ordergrid status trades -o json | jq -r '.items[0].status.conditions[].message'`,
		Args: oneGrid,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
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
			objects := []runtime.Object{og}
			for i := range parts {
				objects = append(objects, &parts[i])
			}
			if done, err := f.encoded(cmd.OutOrStdout(), listOf(objects...)); done {
				return err
			}
			return writeStatus(cmd.OutOrStdout(), og, parts, view{now: time.Now(), wide: f.wide(), colors: colors(cmd)})
		},
	}
	f.register(cmd)
	return cmd
}

// view is how something is shown.
type view struct {
	now          time.Time
	wide, colors bool
}

// goodWhenFalse are the conditions that report a problem when they are True.
var goodWhenFalse = map[string]bool{
	v1alpha1.ConditionStalled: true, v1alpha1.ConditionProgressing: true, v1alpha1.ConditionDataLossSuspected: true, v1alpha1.ConditionConfigurationRegressed: true,
}

// mood is the colour of a condition.
func mood(c *metav1.Condition) string {
	switch good := (c.Status == metav1.ConditionTrue) != goodWhenFalse[c.Type]; {
	case c.Status == metav1.ConditionUnknown || c.Type == v1alpha1.ConditionProgressing && !good:
		return yellow
	case good:
		return green
	}
	return red
}

func conditionTable(conditions []metav1.Condition, v view) *table {
	t := &table{colors: v.colors}
	t.row("CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE")
	for i := range conditions {
		c := &conditions[i]
		t.row(c.Type, cell{string(c.Status), mood(c)}, duration.HumanDuration(v.now.Sub(c.LastTransitionTime.Time)), c.Reason, c.Message)
	}
	return t
}

func writeStatus(w io.Writer, og *v1alpha1.OrderGrid, parts []v1alpha1.GridPartition, v view) error {
	if err := conditionTable(og.Status.Conditions, v).write(w); err != nil {
		return err
	}
	problems := map[string]string{}
	for _, p := range og.Status.Partitions {
		problems[p.Name] = p.Problem
	}
	t := &table{colors: v.colors}
	head := []any{"PARTITION", "PRIMARY", "IN SYNC", "WANTED", "EPOCH", "LINEAGE", "CHANGED", "PROBLEM"}
	if v.wide {
		head = append(head, "PREFERRED", "ADDRESS")
	}
	t.row(head...)
	for i := range parts {
		p := &parts[i]
		primary, address, changed := cell{text: primaryPod(p)}, "none", "never"
		if p.Status.Primary == nil {
			primary = cell{"none", red}
		} else {
			address = p.Status.Primary.Address
		}
		if p.Status.ObservedTime != nil {
			changed = duration.HumanDuration(v.now.Sub(p.Status.ObservedTime.Time)) + " ago"
		}
		inSync := cell{text: strings.Join(inSyncPods(p), ",")}
		if int32(len(p.Status.InSync)) < p.Spec.Replicas {
			inSync.color = yellow
		}
		problem := cell{text: cmp.Or(problems[p.Name], "none")}
		if problem.text != "none" {
			problem.color = red
		}
		line := []any{p.Name, primary, inSync, p.Spec.Replicas, p.Status.Epoch, p.Status.Lineage, changed, problem}
		if v.wide {
			line = append(line, p.Spec.PreferredPod, address)
		}
		t.row(line...)
	}
	fmt.Fprintln(w)
	return t.write(w)
}
