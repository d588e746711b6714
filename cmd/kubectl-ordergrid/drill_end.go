package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
)

type drillAbortFlags struct {
	wait    bool
	timeout time.Duration
}

func drillAbortCommand(k *kubeFlags) *cobra.Command {
	var f drillAbortFlags
	cmd := &cobra.Command{
		Use:   "abort NAME",
		Short: "End a drill, and wait until every fault is recovered",
		Long: `Sets spec.state to Abort: no further fault is injected, faults in place are recovered. The certificate of an aborted
drill is Invalid, but reports what was lost until then. Deleting a FailoverDrill recovers its faults too.

Exit codes: 0 no fault is in place, 1 not in time, 2 wrong usage, 4 failed.`,
		Example: `  kubectl ordergrid drill abort overnight-2k4xd -n trading`,
		Args:    drillKind.one,
		RunE: func(cmd *cobra.Command, args []string) error {
			cluster, err := k.connect()
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), cluster, args[0], cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&f.wait, "wait", true, "wait until the drill is over and no fault is in place")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 5*time.Minute, "how long to wait")
	return cmd
}

func (f *drillAbortFlags) run(ctx context.Context, c *cluster, name string, out io.Writer) error {
	d, err := drillKind.get(ctx, c, name)
	if err != nil {
		return err
	}
	if over(d) && isTrue(d, api.ConditionRecovered) {
		fmt.Fprintf(out, "%s is over already (%s); no fault of it is in place\n", name, stateText(d))
		return nil
	}
	if err := c.abort(ctx, name); err != nil {
		return err
	}
	if !f.wait {
		fmt.Fprintf(out, "%s is being aborted\n", name)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		now, err := drillKind.get(ctx, c, name)
		switch {
		case err == nil && over(now) && isTrue(now, api.ConditionRecovered):
			fmt.Fprintf(out, "%s is aborted; no fault of it is in place\n", name)
			return nil
		case err == nil:
			d = now
		case apierrors.IsNotFound(err):
			fmt.Fprintf(out, "%s was deleted; no fault of it is in place\n", name) // ensured by the finalizer
			return nil
		case ctx.Err() == nil && !mayPass(err):
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			fmt.Fprintf(out, "%s: after %s not all faults are recovered, or the drill is not over: %s\n", name, f.timeout, recoveredText(d))
			return exitError(exitNotDone)
		}
	}
}

func recoveredText(d *api.FailoverDrill) string {
	if c := condition(d, api.ConditionRecovered); c != nil {
		return c.Reason + ": " + c.Message
	}
	return "there is no status from the operator; is it running?"
}

// forms of a certificate, by the value of --output: the names of its files and keys.
var forms = map[string]string{"text": certificate.TextFile, "json": certificate.JSONFile, "html": certificate.PageFile}

func drillCertificateCommand(k *kubeFlags) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "certificate NAME",
		Short: "Print the certificate of a drill",
		Long: `Prints the certificate: as a text, as the JSON whose sha256 stands in status (compared here), or as a page of HTML.
The page comes from the recorder, which is kept for spec.ttl after the end.`,
		Example: `  kubectl ordergrid drill certificate pull-the-plug-x7c2d
  kubectl ordergrid drill certificate pull-the-plug-x7c2d -o html > certificate.html`,
		Args: drillKind.one,
		RunE: func(cmd *cobra.Command, args []string) error {
			form, ok := forms[output]
			if !ok {
				return usageError{fmt.Errorf("--output: value %q, allowed: text, json, html", output)}
			}
			return withDrill(cmd, k, args[0], func(d *api.FailoverDrill, l *recorderLink) error {
				data, err := l.certificate(cmd.Context(), d, form)
				if err == nil {
					_, err = cmd.OutOrStdout().Write(data)
				}
				return err
			})
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text, json, html")
	return cmd
}

func drillHistoryCommand(k *kubeFlags) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "Fetch the history that the certificate of a drill was judged from",
		Long: `Fetches the recorded history: every order with the answer to its sender, every read, every copy of every log, and the
sinks. It comes from the recorder's pod, which is kept for spec.ttl after the end, and its sha256 is compared with the
certificate's. "kubectl ordergrid drill validate" judges it again, without a cluster.`,
		Example: `  kubectl ordergrid drill history pull-the-plug-x7c2d --out history.gz`,
		Args:    drillKind.one,
		RunE: func(cmd *cobra.Command, args []string) error {
			to := out
			if to == "" {
				to = args[0] + "-" + certificate.HistoryFile
			}
			return withDrill(cmd, k, args[0], func(d *api.FailoverDrill, l *recorderLink) error {
				if d.Status.Certificate == nil {
					return fmt.Errorf("drill %s is not over; kubectl ordergrid drill follow %s waits for it", d.Name, d.Name)
				}
				if err := l.history(cmd.Context(), d, to); err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), filepath.Clean(to))
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file to write; default NAME-history.gz")
	return cmd
}

// withDrill calls f with a drill and its recorder.
func withDrill(cmd *cobra.Command, k *kubeFlags, name string, do func(*api.FailoverDrill, *recorderLink) error) error {
	cluster, err := k.connect()
	if err != nil {
		return err
	}
	d, err := drillKind.get(cmd.Context(), cluster, name)
	if err != nil {
		return err
	}
	l := newRecorderLink(cluster)
	defer l.close()
	return do(d, l)
}
