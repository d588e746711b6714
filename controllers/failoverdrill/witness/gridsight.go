package witness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
)

// primarySight is the primary of a partition.
type primarySight struct {
	Name    string `json:"n"`
	Primary string `json:"p"` // pod
	Epoch   int64  `json:"e"`
}

func (o *Observer) seePrimaries(ctx context.Context, f *inject.Fault, _ *sight) (*sight, error) {
	s := &sight{At: time.Now()}
	for _, name := range f.Partitions {
		p := &api.GridPartition{}
		if err := o.Client.Get(ctx, client.ObjectKey{Namespace: f.Grid.Namespace, Name: name}, p); err != nil {
			return nil, err
		}
		seen := primarySight{Name: name, Epoch: p.Status.Epoch}
		if p.Status.Primary != nil {
			seen.Primary = p.Status.Primary.PodName
		}
		s.Partitions = append(s.Partitions, seen)
	}
	if len(s.Partitions) == 0 {
		return nil, fmt.Errorf("the fault moves no partition")
	}
	return s, nil
}

// judgePrimaries: another pod is primary of every partition that was to move, in a later epoch.
func judgePrimaries(_ *inject.Fault, before, now *sight) Result {
	r := Result{Seen: len(before.Partitions) > 0}
	var messages []string
	for _, was := range before.Partitions {
		at := slices.IndexFunc(now.Partitions, func(p primarySight) bool { return p.Name == was.Name })
		if at < 0 {
			r.Seen = false
			messages = append(messages, "partition "+was.Name+" was not looked at")
			continue
		}
		is := now.Partitions[at]
		r.Seen = r.Seen && is.Primary != "" && is.Primary != was.Primary && is.Epoch > was.Epoch
		messages = append(messages, fmt.Sprintf("primary of %s is %s at epoch %d, before %s at %d", was.Name, is.Primary, is.Epoch, was.Primary, was.Epoch))
	}
	r.Message = strings.Join(messages, "; ")
	return r
}

// uidLength is the length of a UID prefix that tells the pods of a grid apart: of a thousand pods two share 32 bits one
// time in eight thousand, and then a drill waits for a pod that is new already.
const uidLength = 8

func (o *Observer) seeGrid(ctx context.Context, f *inject.Fault, _ *sight) (*sight, error) {
	s := &sight{At: time.Now()}
	pods, err := o.gridPods(ctx, f)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		uid := string(pods[i].UID)
		s.UIDs = append(s.UIDs, uid[:min(uidLength, len(uid))])
	}
	if len(s.UIDs) == 0 {
		return nil, fmt.Errorf("OrderGrid %s has no pods", f.Grid.Name)
	}
	return s, nil
}

// judgeGrid: no earlier pod is left, and there are as many as before.
func judgeGrid(_ *inject.Fault, before, now *sight) Result {
	left := 0
	for _, uid := range before.UIDs {
		if slices.Contains(now.UIDs, uid) {
			left++
		}
	}
	return Result{
		Seen:    len(before.UIDs) > 0 && left == 0 && len(now.UIDs) >= len(before.UIDs),
		Message: fmt.Sprintf("of %d earlier pods %d still exist; there are %d pods", len(before.UIDs), left, len(now.UIDs)),
	}
}
