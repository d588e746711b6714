package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// Exit codes of the drill commands in addition to 0 and those of every command.
const (
	exitBroken      = 1   // Violated or Missed
	exitNothing     = 3   // Invalid, failed, aborted or impossible: nothing was shown
	exitInterrupted = 130 // by convention; the drill goes on
)

// drillCodes is for the help of commands that end with a verdict.
const drillCodes = `Exit codes: 0 Pass, 1 Violated or Missed, 2 wrong usage, 3 Invalid, failed, aborted or impossible: nothing was shown,
4 the command itself failed, 130 interrupted.`

func drillCommand(k *kubeFlags) *cobra.Command {
	return drillKind.group("Inject faults into a grid and certify what was lost",
		`Runs FailoverDrills: faults in one grid while orders flow, and in the end a certificate of what was created,
acknowledged, lost, duplicated and out of order, judged from a ledger independent of the grid.

For certificates and safety in production see docs/drills.md.`,
		drillRunCommand(k), drillFollowCommand(k), drillListCommand(k), drillStatusCommand(k), drillAbortCommand(k),
		drillCertificateCommand(k), drillHistoryCommand(k), drillValidateCommand(), drillSuitesCommand())
}

// abort requests the end of a drill.
func (c *cluster) abort(ctx context.Context, name string) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"state": api.DrillAbort}})
	if err != nil {
		return err
	}
	err = c.own.Patch(types.MergePatchType).Namespace(c.namespace).Resource(drillKind.resource).Name(name).
		Param("fieldManager", "kubectl-ordergrid").Body(patch).Do(ctx).Error()
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w; the chart's ClusterRole ending in -operate grants it", err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("failoverdrill %s/%s does not exist: %w", c.namespace, name, err)
	}
	return err
}

func condition(d *api.FailoverDrill, kind string) *metav1.Condition {
	return meta.FindStatusCondition(d.Status.Conditions, kind)
}

func isTrue(d *api.FailoverDrill, kind string) bool {
	return meta.IsStatusConditionTrue(d.Status.Conditions, kind)
}

// over reports whether a drill has ended.
func over(d *api.FailoverDrill) bool {
	return isTrue(d, api.ConditionComplete) || isTrue(d, api.ConditionFailed)
}

// verdictError is the result of a command by the verdict of a drill that has ended.
func verdictError(d *api.FailoverDrill) error {
	if c := d.Status.Certificate; c != nil {
		if code := verdictCode(string(c.Verdict)); code != 0 {
			return exitError(code)
		}
		if isTrue(d, api.ConditionComplete) {
			return nil
		}
	}
	return exitError(exitNothing)
}

// verdictCode is the exit code for a verdict.
func verdictCode(verdict string) int {
	switch api.DrillVerdict(verdict) {
	case api.DrillPass:
		return 0
	case api.DrillViolated, api.DrillMissed:
		return exitBroken
	}
	return exitNothing
}

// mayPass reports whether an error of a request is transient: an API server outage, as in some drills.
func mayPass(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true // no answer at all
	}
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err)
}
