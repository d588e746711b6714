package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// runKind is a kind of objects that run once and end with a verdict.
type runKind[T any, P runObject[T]] struct {
	kind, resource string
	command        string // of this program
	argument       string // of "run"
	role           string // suffix of the name of the ClusterRole that lets create one
}

// runObject is a pointer to one.
type runObject[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

var (
	drillKind = runKind[api.FailoverDrill, *api.FailoverDrill]{"FailoverDrill", "failoverdrills", "drill", "SUITE", "-operate"}
	probeKind = runKind[api.OrderProbe, *api.OrderProbe]{"OrderProbe", "orderprobes", "probe", "SCENARIO", "-edit"}
)

// group is a command with subcommands only.
func (k runKind[T, P]) group(short, long string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:   k.command,
		Short: short,
		Long:  long,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q; see %s --help", args[0], cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// one checks the argument of the commands about one object.
func (k runKind[T, P]) one(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return usageError{fmt.Errorf("%d arguments, allowed: the name of one %s; see %s --help", len(args), k.kind, cmd.CommandPath())}
	}
	return nil
}

func (k runKind[T, P]) create(ctx context.Context, c *cluster, o P) (P, error) {
	o.SetNamespace(c.namespace)
	created := P(new(T))
	err := c.own.Post().Namespace(c.namespace).Resource(k.resource).Param("fieldManager", "kubectl-ordergrid").Body(o).Do(ctx).Into(created)
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%w; the chart's ClusterRole ending in %s grants it", err, k.role)
	case apierrors.IsInvalid(err): // the API server's message names field, value and remedy; here the fields are flags
		return nil, usageError{err}
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("the cluster has no %ss; upgrade OrderGrid's chart: %w", k.kind, err)
	}
	return created, err
}

func (k runKind[T, P]) get(ctx context.Context, c *cluster, name string) (P, error) {
	o := P(new(T))
	err := c.own.Get().Namespace(c.namespace).Resource(k.resource).Name(name).Do(ctx).Into(o)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s %s/%s does not exist; kubectl ordergrid %s list -A lists them: %w", strings.ToLower(k.kind), c.namespace, name, k.command, err)
	}
	return o, err
}

// list those of the namespace or of all, the latest last.
func (k runKind[T, P]) list(ctx context.Context, c *cluster, all bool) ([]T, error) {
	request := c.own.Get().Resource(k.resource)
	if !all {
		request = request.Namespace(c.namespace)
	}
	text, err := request.Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	var found struct{ Items []T }
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, fmt.Errorf("list of %s: %w", k.resource, err)
	}
	slices.SortStableFunc(found.Items, func(a, b T) int {
		return P(&a).GetCreationTimestamp().Compare(P(&b).GetCreationTimestamp().Time)
	})
	return found.Items, nil
}

// names are for completion.
func (k runKind[T, P]) names(ctx context.Context, c *cluster) (names []string, err error) {
	list, err := k.list(ctx, c, false)
	for i := range list {
		names = append(names, P(&list[i]).GetName())
	}
	return names, err
}

// listCommand lists the objects as a table that write makes, or as the API server has them.
func (k runKind[T, P]) listCommand(flags *kubeFlags, example string, write func(io.Writer, []T, view) error) *cobra.Command {
	var all bool
	var f listFlags
	cmd := &cobra.Command{
		Use:     "list",
		Short:   fmt.Sprintf("List %ss and their verdicts, the latest last", k.command),
		Example: example,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			cluster, err := flags.connect()
			if err != nil {
				return err
			}
			list, err := k.list(cmd.Context(), cluster, all)
			if err != nil {
				return err
			}
			objects := make([]runtime.Object, 0, len(list))
			for i := range list {
				objects = append(objects, P(&list[i]))
			}
			if done, err := f.encoded(cmd.OutOrStdout(), listOf(objects...)); done {
				return err
			}
			if len(list) == 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "no %ss; kubectl ordergrid %s run %s --grid GRID starts one\n", k.command, k.command, k.argument)
				return nil
			}
			return write(cmd.OutOrStdout(), list, view{now: time.Now(), wide: f.wide(), colors: colors(cmd)})
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "of all namespaces")
	return cmd
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%d arguments, allowed: none; see %s --help", len(args), cmd.CommandPath())}
	}
	return nil
}
