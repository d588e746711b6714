package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
)

const (
	// followEvery is the polling interval of a drill.
	followEvery = 500 * time.Millisecond
	// answerLimit bounds the wait for an answer: the connection to an API server without power stays open.
	answerLimit = 10 * time.Second
	// standing is how long a drill may be impossible before it is given up: objects just created may be seen late.
	standing = 15 * time.Second
	// abortLimit bounds the wait for the end of an aborted drill.
	abortLimit = 15 * time.Minute
)

// followFlags are those of commands that follow a drill.
type followFlags struct {
	folder           string
	abortOnInterrupt bool
}

func (f *followFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.folder, "out", "", "folder for drill.yaml, certificate.txt, certificate.json, certificate.html and history.gz; made if need be")
	fl.BoolVar(&f.abortOnInterrupt, "abort-on-interrupt", false, "Ctrl-C aborts the drill, and waits until every fault is recovered")
}

func drillFollowCommand(k *kubeFlags) *cobra.Command {
	var f followFlags
	cmd := &cobra.Command{
		Use:   "follow NAME",
		Short: "Show what happens in a drill until there is a certificate",
		Long: `Shows what happens, one line an event, and prints the certificate in the end. Ctrl-C leaves the drill running.

` + drillCodes,
		Example: `  kubectl ordergrid drill follow pull-the-plug-x7c2d -n trading --out certificate`,
		Args:    drillKind.one,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.folder != "" {
				if err := os.MkdirAll(f.folder, 0o755); err != nil {
					return err
				}
			}
			cluster, err := k.connect()
			if err != nil {
				return err
			}
			if _, err := drillKind.get(cmd.Context(), cluster, args[0]); err != nil {
				return err
			}
			return f.follower(cluster, args[0], cmd.OutOrStdout(), cmd.ErrOrStderr()).run(cmd.Context())
		},
	}
	f.register(cmd.Flags())
	return cmd
}

// follower shows one drill.
type follower struct {
	followFlags
	cluster    *cluster
	name       string
	out, notes io.Writer
	recorder   *recorderLink
	startLimit time.Duration // 0: it may wait for ever
	now        func() time.Time

	last       *api.FailoverDrill // as last shown
	away       bool               // the API server does not answer
	impossible time.Time          // since when
	began      time.Time
}

func (f *followFlags) follower(c *cluster, name string, out, notes io.Writer) *follower {
	return &follower{followFlags: *f, cluster: c, name: name, out: out, notes: notes, recorder: newRecorderLink(c), now: time.Now,
		last: &api.FailoverDrill{}}
}

// run follows to the end; its error is the verdict.
func (w *follower) run(ctx context.Context) error {
	defer w.recorder.close()
	w.began = w.now()
	drill, err := w.follow(ctx)
	if ctx.Err() != nil {
		return w.interrupted()
	}
	if err != nil {
		return err
	}
	return w.finish(ctx, drill)
}

// follow shows the events until the drill has ended.
func (w *follower) follow(ctx context.Context) (*api.FailoverDrill, error) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		drill, err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil:
			w.back()
			w.show(ctx, drill)
			if over(drill) {
				return drill, nil
			}
			if why := w.giveUp(drill); why != "" {
				return w.cancel(ctx, why)
			}
		case apierrors.IsNotFound(err):
			fmt.Fprintf(w.notes, "FailoverDrill %s was deleted; its faults are recovered\n", w.name)
			return nil, exitError(exitNothing)
		case mayPass(err):
			w.gone(err)
		default:
			return nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (w *follower) look(ctx context.Context) (*api.FailoverDrill, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	return drillKind.get(ctx, w.cluster, w.name)
}

// gone and back report once that the API server does not answer, which may be due to the drill.
func (w *follower) gone(err error) {
	if !w.away {
		w.line("", "the API server does not answer (%v); the drill goes on, waiting", err)
	}
	w.away = true
}

func (w *follower) back() {
	if w.away {
		w.line("", "the API server answers again")
	}
	w.away = false
}

// show writes a line for each change.
func (w *follower) show(ctx context.Context, drill *api.FailoverDrill) {
	news := newsOf(w.last, drill)
	w.last = drill
	if len(news) == 0 {
		return
	}
	orders := ""
	if isTrue(drill, api.ConditionRunning) {
		orders = w.recorder.orders(ctx, drill)
	}
	for i, n := range news {
		if i == len(news)-1 && orders != "" {
			n.text += "; " + orders
		}
		w.line(n.where, "%s", n.text)
	}
}

func (w *follower) line(where, format string, args ...any) {
	fmt.Fprintf(w.out, "%s  %-12s  %s\n", w.now().Format("15:04:05"), where, fmt.Sprintf(format, args...))
}

// standingReasons are those for which a drill does not begin without user action.
var standingReasons = []string{"GridNotFound", "PlanInvalid", "NamespaceNotAllowed", "GridMismatch", "TooManyShards", "FaultNotPossible", "NameTaken"}

// giveUp returns why a drill that this command started is given up before it has begun.
func (w *follower) giveUp(d *api.FailoverDrill) string {
	if w.startLimit == 0 || isTrue(d, api.ConditionRunning) {
		return ""
	}
	c := condition(d, api.ConditionPreflight)
	if c == nil || c.Status == metav1.ConditionTrue || !slices.Contains(standingReasons, c.Reason) {
		w.impossible = time.Time{}
	} else if w.impossible.IsZero() {
		w.impossible = w.now()
	}
	switch waited := w.now().Sub(w.began); {
	case !w.impossible.IsZero() && w.now().Sub(w.impossible) >= standing:
		return "it cannot begin until the above is fixed"
	case waited >= w.startLimit && c == nil:
		return fmt.Sprintf("after %s the operator has not seen it; is it running, and of this version?", w.startLimit)
	case waited >= w.startLimit:
		return fmt.Sprintf("it has not begun after %s", w.startLimit)
	}
	return ""
}

// cancel aborts a drill that did not begin, so that it does not begin later unattended.
func (w *follower) cancel(ctx context.Context, why string) (*api.FailoverDrill, error) {
	if err := w.cluster.abort(ctx, w.name); err != nil {
		return nil, fmt.Errorf("%s, and it cannot be aborted: %w", why, err)
	}
	fmt.Fprintf(w.notes, "%s is aborted: %s\n", w.name, why)
	return nil, exitError(exitNothing)
}

// interrupted ends the command, and the drill if that was requested.
func (w *follower) interrupted() error {
	if !w.abortOnInterrupt {
		in := inNamespace(w.cluster)
		fmt.Fprintf(w.notes, "\n%s goes on. To follow it again: kubectl ordergrid drill follow %s%s. To end it: kubectl ordergrid drill abort %s%s\n", w.name, w.name, in, w.name, in)
		return exitError(exitInterrupted)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) // a second Ctrl-C ends the waiting
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, abortLimit)
	defer cancel()
	if err := w.cluster.abort(ctx, w.name); err != nil {
		return fmt.Errorf("%s goes on: %w", w.name, err)
	}
	fmt.Fprintf(w.notes, "\n%s is aborted; waiting until every fault is recovered (Ctrl-C: do not wait)\n", w.name)
	w.startLimit = 0
	drill, err := w.follow(ctx)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintf(w.notes, "\nfaults of %s may still be in place; kubectl ordergrid drill status %s%s shows which\n", w.name, w.name, inNamespace(w.cluster))
		return exitError(exitInterrupted)
	case err != nil:
		return err
	}
	return w.finish(ctx, drill)
}

// finish prints the certificate, writes the files, and ends with the verdict.
func (w *follower) finish(ctx context.Context, drill *api.FailoverDrill) error {
	var failed error
	if drill.Status.Certificate != nil {
		text, err := w.recorder.certificate(ctx, drill, certificate.TextFile)
		if err == nil {
			_, err = fmt.Fprintf(w.out, "\n%s\n", text)
		}
		failed = err
	}
	if w.folder != "" {
		failed = errors.Join(failed, w.recorder.save(ctx, drill, w.folder))
	}
	verdict := verdictError(drill)
	if failed != nil {
		fmt.Fprintln(w.notes, "kubectl ordergrid:", failed)
		if verdict == nil { // a missing certificate must not pass for a good one
			return exitError(exitFailed)
		}
	}
	return verdict
}
