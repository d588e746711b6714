package v1alpha1_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/internal/envtest"
)

func member(pod string, boot int) api.Member {
	return api.Member{
		ID: fmt.Sprintf("%s/%016x", pod, boot), PodName: pod, BootID: fmt.Sprintf("%016x", boot),
		Address: fmt.Sprintf("10.0.0.%d:7400", boot%250+1),
	}
}

// Three processes of two pods: c is a after a restart of its container.
var (
	a = member("rtd-s0-0", 1)
	b = member("rtd-s0-1", 2)
	c = member("rtd-s0-0", 3)
)

// config is a status at an epoch.
func config(epoch, lineage int64, primary *api.Member, inSync ...api.Member) api.GridPartitionStatus {
	now := metav1.Now()
	s := api.GridPartitionStatus{Epoch: epoch, Lineage: lineage, Primary: primary, InSync: inSync, ObservedTime: &now}
	if epoch > 0 {
		s.ChangeID = fmt.Sprintf("change-%d", epoch)
	}
	return s
}

func with(s api.GridPartitionStatus, change func(*api.GridPartitionStatus)) api.GridPartitionStatus {
	change(&s)
	return s
}

// newPartition creates an unclaimed partition in a namespace of its own.
func newPartition(t *testing.T, cl client.Client) *api.GridPartition {
	t.Helper()
	namespace := envtest.Namespace(t, cl, "transition-")
	gp := &api.GridPartition{
		ObjectMeta: metav1.ObjectMeta{Name: "rtd-p0", Namespace: namespace},
		Spec:       api.GridPartitionSpec{GridRef: api.GridReference{Name: "rtd"}, Replicas: 2, MinInSync: 1, PreferredPod: "rtd-s0-0"},
		// The API server must drop this: only the status subresource writes status.
		Status: config(7, 3, &b, b),
	}
	if err := cl.Create(t.Context(), gp); err != nil {
		t.Fatal(err)
	}
	if gp.Status.Epoch != 0 || gp.Status.Primary != nil {
		t.Fatalf("created with status %+v", gp.Status)
	}
	return gp
}

// accept gives up the in-sync members of the present epoch, as the operator does.
func accept(t *testing.T, cl client.Client, gp *api.GridPartition) {
	t.Helper()
	gp.Spec.AcceptDataLossEpoch = gp.Status.Epoch
	if err := cl.Update(t.Context(), gp); err != nil {
		t.Fatal(err)
	}
}

// put replaces the status, as a grid node does: a PUT on the status subresource with the resourceVersion it read.
func put(t *testing.T, cl client.Client, gp *api.GridPartition, s api.GridPartitionStatus) error {
	t.Helper()
	gp.Status = s
	return cl.Status().Update(t.Context(), gp)
}

func TestTransitions(t *testing.T) {
	cl := newClient(t)
	pair := config(3, 1, &a, a, b)
	for _, test := range []struct {
		name   string
		before []api.GridPartitionStatus // reached one after the other
		next   api.GridPartitionStatus
		refuse string // part of the message; empty: accepted
	}{
		{"first claim", nil, config(1, 1, &a, a), ""},
		{"first claim by the other pod", nil, config(1, 1, &b, b), ""},
		{"first claim at epoch 2", nil, config(2, 1, &a, a), "status.epoch: Invalid value: epoch 2 at the first claim: the partition has no configuration yet; propose epoch 1"},
		{"a status without a claim, then the claim", []api.GridPartitionStatus{config(0, 0, nil)}, config(1, 1, &a, a), ""},
		{"a status without a claim, then epoch 2", []api.GridPartitionStatus{config(0, 0, nil)}, config(2, 1, &a, a), "epoch 2 at the first claim: the partition has no configuration yet; propose epoch 1"},
		{"a status without a claim, then lineage 2", []api.GridPartitionStatus{config(0, 0, nil)}, config(1, 2, &a, a), "lineage 2 at the first claim: nothing can have been lost yet; set lineage to 1"},
		{"a status without a claim, then a backup", []api.GridPartitionStatus{config(0, 0, nil)}, config(1, 1, &a, a, b), "inSync has 2 members at the first claim"},
		{"first claim without lineage", nil, config(1, 0, &a, a), "lineage 0 at epoch 1: the first claim starts lineage 1; set lineage to 1"},
		{"first claim at lineage 2", nil, config(1, 2, &a, a), "lineage 2 at the first claim: nothing can have been lost yet; set lineage to 1"},
		{"first claim with a backup", nil, config(1, 1, &a, a, b), "inSync has 2 members at the first claim, before any member can have joined; claim with the primary alone"},
		{"first claim without a primary", nil, config(1, 1, nil), "primary is missing at epoch 1: every epoch has exactly one primary; name it with id, podName, bootID and address"},
		{"a primary at epoch 0", nil, config(0, 0, &a, a), "primary rtd-s0-0/0000000000000001 at epoch 0, which means never claimed; propose epoch 1"},
		{"first claim without change id", nil, with(config(1, 1, &a, a), func(s *api.GridPartitionStatus) { s.ChangeID = "" }), "changeID is missing at epoch 1: a proposer recognises its own change by it after a timeout; set it to a new random string with every proposal"},

		{"join", upTo(pair)[:2], config(3, 1, &a, a, b), ""},
		{"shrink", upTo(pair), config(4, 1, &a, a), ""},
		{"take-over", upTo(pair), config(4, 1, &b, b), ""},
		{"hand-over", upTo(pair), config(4, 1, &b, b, a), ""},
		{"the same again", upTo(pair), pair, ""},
		{"accepted loss", upTo(pair), config(4, 2, &c, c), ""},
		{"accepted loss by a member that was in sync", upTo(pair), config(4, 2, &a, a), ""},
		{"loss not accepted", upTo(pair), config(4, 2, &c, c), "status.lineage: Invalid value: lineage 2 would give up what lineage 1 holds without an accepted loss: spec.acceptDataLossEpoch is 0, not the epoch 3; keep the lineage, or accept the loss with the annotation ordergrid.dev/accept-data-loss=3"},
		{"a second loss after an accepted one", append(upTo(pair), config(4, 2, &c, c)), config(5, 3, &a, a), "spec.acceptDataLossEpoch is 3, not the epoch 4"},
		{"accepted loss, yet two lineages", upTo(pair), config(4, 3, &c, c), "lineage 3 does not follow 1"},

		{"epoch skipped", upTo(pair), config(5, 1, &a, a), "epoch 5 does not follow 3: every change of the configuration raises it by exactly 1; read the partition again from the API server, not from a cache, and propose 4"},
		{"epoch back", upTo(pair), config(2, 1, &a, a), "epoch 2 does not follow 3"},
		{"epoch back to the beginning", upTo(pair), config(0, 0, nil), "epoch 0 does not follow 3"},
		{"take-over without a new epoch", upTo(pair), with(config(3, 1, &b, b), func(s *api.GridPartitionStatus) { s.ChangeID = pair.ChangeID }), "epoch 3 is already taken by change change-3: primary, inSync, lineage and changeID may change only together with the epoch; read the partition again and propose epoch 4"},
		{"shrink without a new epoch", upTo(pair), config(3, 1, &a, a), "epoch 3 is already taken"},
		{"join without a new epoch", upTo(pair)[:2], config(2, 1, &a, a, b), "epoch 2 is already taken"},
		{"another change id without a new epoch", upTo(pair), with(pair, func(s *api.GridPartitionStatus) { s.ChangeID = "other" }), "epoch 3 is already taken"},
		{"another address without a new epoch", upTo(pair), with(pair, func(s *api.GridPartitionStatus) {
			p := a
			p.Address = "10.9.9.9:7400"
			s.Primary, s.InSync = &p, []api.Member{p, b}
		}), "epoch 3 is already taken"},
		{"lineage without a new epoch", upTo(pair), with(pair, func(s *api.GridPartitionStatus) { s.Lineage = 2 }), "epoch 3 is already taken"},
		{"a restarted process of the same pod", upTo(pair), config(4, 1, &c, c), `primary rtd-s0-0/0000000000000003 was not in inSync ["rtd-s0-0/0000000000000001", "rtd-s0-1/0000000000000002"] of epoch 3: only an in-sync member holds every acknowledged order; let it join through the primary first, or accept the loss of data, which raises lineage`},
		{"a member that was dropped", append(upTo(pair), config(4, 1, &a, a)), config(5, 1, &b, b), "primary rtd-s0-1/0000000000000002 was not in inSync"},
		{"lineage falls", append(upTo(pair), config(4, 2, &a, a)), config(5, 1, &a, a), "lineage 1 does not follow 2: it never falls, and rises by 1 only when a loss of data was accepted; keep it as it was"},
		{"lineage skips", upTo(pair), config(4, 3, &a, a), "lineage 3 does not follow 1"},
		{"lineage forgotten", upTo(pair), config(4, 0, &a, a), "lineage 0 does not follow 1"},
		{"primary not in sync", upTo(pair), config(4, 1, &a, b), `inSync ["rtd-s0-1/0000000000000002@10.0.0.3:7400"] does not contain the primary rtd-s0-0/0000000000000001@10.0.0.2:7400: the primary is always in sync; add it with the same id and address`},
		{"primary in sync at another address", upTo(pair), config(4, 1, &a, with2(a, "10.9.9.9:7400")), "does not contain the primary rtd-s0-0/0000000000000001@10.0.0.2:7400"},
		{"no primary", upTo(pair), config(4, 1, nil), "primary is missing at epoch 4"},
		{"none in sync", upTo(pair), config(4, 1, &a), "inSync [] does not contain the primary"},
		{"in sync without a primary", upTo(pair), config(4, 1, nil, a), "inSync has 1 members but there is no primary: name the primary, or leave inSync empty"},
		{"a count that is not the number of members", upTo(pair), with(config(4, 1, &a, a), func(s *api.GridPartitionStatus) { s.InSyncCount = 2 }), "status.inSyncCount: Invalid value: inSyncCount 2 is not the 1 members of inSync: set it to 1, or leave it out"},
		{"a count that is right", upTo(pair), with(config(4, 1, &a, a), func(s *api.GridPartitionStatus) { s.InSyncCount = 1 }), ""},
		{"four copies", upTo(pair), config(4, 1, &a, a, b, c, member("rtd-s0-2", 4)), ""},
		{"five copies", upTo(pair), config(4, 1, &a, a, b, c, member("rtd-s0-2", 4), member("rtd-s0-3", 5)), "status.inSync: Too many: 5: must have at most 4 items"},
		{"a member twice", upTo(pair), config(4, 1, &a, a, a), "status.inSync[1]: Duplicate value"},
		{"an id that is no process", upTo(pair), config(4, 1, &api.Member{ID: "rtd-s0-0/0000000000000009", PodName: "rtd-s0-0", BootID: "0000000000000001", Address: "10.0.0.1:7400"}), "id rtd-s0-0/0000000000000009 is not podName/bootID: set it to rtd-s0-0/0000000000000001"},
		{"an address without port", upTo(pair), config(4, 1, ptrTo(with2(a, "10.0.0.1")), with2(a, "10.0.0.1")), "status.primary.address"},
	} {
		t.Run(test.name, func(t *testing.T) {
			gp := newPartition(t, cl)
			for _, s := range test.before {
				if s.Lineage > 1 {
					accept(t, cl, gp)
				}
				if err := put(t, cl, gp, s); err != nil {
					t.Fatalf("epoch %d on the way: %v", s.Epoch, err)
				}
			}
			if strings.HasPrefix(test.name, "accepted loss") {
				accept(t, cl, gp)
			}
			err := put(t, cl, gp, test.next)
			switch {
			case test.refuse == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case test.refuse == "":
			case err == nil:
				t.Fatalf("accepted; want: %s", test.refuse)
			case !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.refuse):
				t.Fatalf("message\n got: %v\nwant: %s", err, test.refuse)
			default:
				t.Log(err)
			}
		})
	}
}

func with2(m api.Member, address string) api.Member { m.Address = address; return m }
func ptrTo(m api.Member) *api.Member                { return &m }

// upTo are the usual steps to a pair at epoch 3: claimed, claimed again by the same member, joined.
func upTo(pair api.GridPartitionStatus) []api.GridPartitionStatus {
	return []api.GridPartitionStatus{config(1, 1, &a, a), config(2, 1, &a, a), pair}
}

// TestStatusCannotBeForgotten: a PUT without status would start again at epoch 0, and an empty process could claim.
func TestStatusCannotBeForgotten(t *testing.T) {
	cl := newClient(t)
	gp := newPartition(t, cl)
	if err := put(t, cl, gp, config(1, 1, &a, a)); err != nil {
		t.Fatal(err)
	}
	bare := &unstructured.Unstructured{}
	bare.SetGroupVersionKind(api.GroupVersion.WithKind("GridPartition"))
	if err := cl.Get(t.Context(), client.ObjectKeyFromObject(gp), bare); err != nil {
		t.Fatal(err)
	}
	delete(bare.Object, "status")
	err := cl.Status().Update(t.Context(), bare)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "status removed") {
		t.Errorf("PUT without status: %v", err)
	}
	bare.Object["status"] = map[string]any{}
	if err := cl.Status().Update(t.Context(), bare); !apierrors.IsInvalid(err) {
		t.Errorf("PUT with an empty status: %v", err)
	}
	merge := client.RawPatch("application/merge-patch+json", []byte(`{"status":null}`))
	if err := cl.Status().Patch(t.Context(), gp.DeepCopy(), merge); !apierrors.IsInvalid(err) {
		t.Errorf("merge patch of status to null: %v", err)
	}
	merge = client.RawPatch("application/merge-patch+json", []byte(`{"status":{"epoch":9}}`))
	if err := cl.Status().Patch(t.Context(), gp.DeepCopy(), merge); !apierrors.IsInvalid(err) {
		t.Errorf("merge patch of the epoch: %v", err)
	}
}

// TestSpecWritesKeepStatus: writes of the operator never change the configuration, however long the status is.
func TestSpecWritesKeepStatus(t *testing.T) {
	cl := newClient(t)
	gp := newPartition(t, cl)
	for _, s := range upTo(config(3, 1, &a, a, b)) {
		if err := put(t, cl, gp, s); err != nil {
			t.Fatal(err)
		}
	}
	gp.Spec.MinInSync = 2
	gp.Status = config(9, 9, &c, c)
	if err := cl.Update(t.Context(), gp); err != nil {
		t.Fatal(err)
	}
	if gp.Spec.MinInSync != 2 || gp.Status.Epoch != 3 || gp.Status.Primary.ID != a.ID {
		t.Errorf("after a write of spec: minInSync %d, status %+v", gp.Spec.MinInSync, gp.Status)
	}
	for name, change := range map[string]func(*api.GridPartitionSpec){
		"spec.gridRef":   func(s *api.GridPartitionSpec) { s.GridRef.Name = "other" },
		"spec.partition": func(s *api.GridPartitionSpec) { s.Partition = 1 },
	} {
		changed := gp.DeepCopy()
		change(&changed.Spec)
		if err := cl.Update(t.Context(), changed); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("change of %s: %v", name, err)
		}
	}
	gp.Spec.Shard, gp.Spec.Pods, gp.Spec.PreferredPod = 1, []string{"rtd-s1-0", "rtd-s1-1"}, "rtd-s1-0"
	if err := cl.Update(t.Context(), gp); err != nil || gp.Status.Epoch != 3 {
		t.Errorf("a move to another shard: %v, epoch %d", err, gp.Status.Epoch)
	}
}

// TestLossIsAcceptedAtThePresentEpochOnly: neither in advance nor afterwards, so that a stale acceptance has no effect.
func TestLossIsAcceptedAtThePresentEpochOnly(t *testing.T) {
	cl := newClient(t)
	early := &api.GridPartition{
		ObjectMeta: metav1.ObjectMeta{Name: "early", Namespace: "default"},
		Spec:       api.GridPartitionSpec{GridRef: api.GridReference{Name: "rtd"}, Replicas: 2, MinInSync: 1, PreferredPod: "rtd-s0-0", AcceptDataLossEpoch: 3},
	}
	checkRefusal(t, cl.Create(t.Context(), early, client.DryRunAll), "spec.acceptDataLossEpoch: Invalid value: 3 is not the present epoch 0: a loss is accepted neither in advance nor afterwards; read the partition again and set it to status.epoch")
	gp := newPartition(t, cl)
	for _, s := range upTo(config(3, 1, &a, a, b)) {
		if err := put(t, cl, gp, s); err != nil {
			t.Fatal(err)
		}
	}
	for _, epoch := range []int64{2, 4} {
		wrong := gp.DeepCopy()
		wrong.Spec.AcceptDataLossEpoch = epoch
		checkRefusal(t, cl.Update(t.Context(), wrong), "is not the present epoch 3")
	}
	negative := gp.DeepCopy()
	negative.Spec.AcceptDataLossEpoch = -1
	checkRefusal(t, cl.Update(t.Context(), negative), "spec.acceptDataLossEpoch: Invalid value: -1: -1 is not an epoch; set it to status.epoch, or leave it out")
	accept(t, cl, gp)
	if err := put(t, cl, gp, config(4, 1, &b, b)); err != nil {
		t.Fatalf("a member takes over although its loss was accepted: %v", err)
	}
	gp.Spec.MinInSync = 2 // the used acceptance stays, and other fields can be written
	checkRefusal(t, cl.Update(t.Context(), gp), "")
	gp.Spec.AcceptDataLossEpoch = 0
	checkRefusal(t, cl.Update(t.Context(), gp), "")
	gp.Spec.ReassertChangeID = strings.Repeat("x", 65)
	checkRefusal(t, cl.Update(t.Context(), gp), "spec.reassertChangeID: Too long")
}

// TestRacingMembers lets both members of a pair change the configuration from the same state, repeatedly: the
// primary drops the backup while the backup takes over. Exactly one PUT may succeed, and the loser, having read again,
// must be refused for good.
func TestRacingMembers(t *testing.T) {
	cl := newClient(t)
	for round := range 20 {
		gp := newPartition(t, cl)
		for _, s := range upTo(config(3, 1, &a, a, b)) {
			if err := put(t, cl, gp, s); err != nil {
				t.Fatal(err)
			}
		}
		errs := race(t.Context(), cl, gp, config(4, 1, &a, a), config(4, 1, &b, b))
		won := 0
		loser := b
		for i, err := range errs {
			switch {
			case err == nil:
				won++
				if i == 1 {
					loser = a
				}
			case !apierrors.IsConflict(err):
				t.Fatalf("round %d: %v", round, err)
			}
		}
		if won != 1 {
			t.Fatalf("round %d: %d of 2 proposals succeeded", round, won)
		}
		if err := cl.Get(t.Context(), client.ObjectKeyFromObject(gp), gp); err != nil {
			t.Fatal(err)
		}
		if gp.Status.Epoch != 4 || len(gp.Status.InSync) != 1 || gp.Status.Primary.ID == loser.ID {
			t.Fatalf("round %d: status %+v", round, gp.Status)
		}
		if err := put(t, cl, gp, config(5, 1, &loser, loser)); !apierrors.IsInvalid(err) {
			t.Fatalf("round %d: the loser took over afterwards: %v", round, err)
		}
	}
}

// race sends all proposals at once, each from the same resourceVersion.
func race(ctx context.Context, cl client.Client, gp *api.GridPartition, proposals ...api.GridPartitionStatus) []error {
	errs := make([]error, len(proposals))
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i, s := range proposals {
		proposal := gp.DeepCopy()
		proposal.Status = s
		wg.Go(func() {
			<-start
			errs[i] = cl.Status().Update(ctx, proposal)
		})
	}
	close(start)
	wg.Wait()
	return errs
}
