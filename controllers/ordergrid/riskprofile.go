package ordergrid

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/limits"
)

// Path of the limits in a grid node. The kubelet replaces the file when the ConfigMap changes, and the node reads it again:
// the primary of each partition puts it in force by an entry of its log. Beside it is the file that nodes of this release
// read, with the source of the limits.
const (
	limitsVolume     = "limits"
	limitsDir        = "/etc/ordergrid/limits"
	limitsKey        = "limits.json"
	limitsSourcedKey = limitsKey + limits.SourcedFile
)

// limitsArgs are the flags of a grid node with limits.
func limitsArgs(grid *api.OrderGrid) []string {
	if grid.Spec.RiskProfile == nil {
		return nil
	}
	return []string{"--limits", path.Join(limitsDir, limitsKey)}
}

// limitsVolumeOf is the volume of a grid node.
func limitsVolumeOf(grid *api.OrderGrid) corev1.Volume {
	return corev1.Volume{Name: limitsVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: api.LimitsConfigMap(grid.Name)},
		DefaultMode:          ptr.To[int32](0o444),
	}}}
}

// riskLimits is what a pass knows of spec.riskProfile.
type riskLimits struct {
	files   sourcedFiles // that the nodes are given; empty if none of that name can be
	missing bool         // there is no such RiskProfile
	invalid string       // why its content is not given to the nodes
	begins  bool         // the files are of another RiskProfile than before
}

// sourcedFiles are a file of limits or regions as nodes are given it: with sources, and without for nodes of releases before; "" for none.
type sourcedFiles struct{ sourced, plain string }

// fileDigests are the SHA-256 of the files, as nodes report it.
type fileDigests struct{ sourced, plain string }

func (f *sourcedFiles) digests() fileDigests {
	if f.plain == "" {
		return fileDigests{}
	}
	sum := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	return fileDigests{sum(cmp.Or(f.sourced, f.plain)), sum(f.plain)}
}

// has reports whether a node has one of them. A release before has the one without a source.
func (d *fileDigests) has(digest string) bool {
	return digest != "" && (digest == d.sourced || digest == d.plain)
}

func sourceOf(p *limits.Profile) *limits.Source {
	if p == nil {
		return nil
	}
	return p.Source
}

func filesOf(p *limits.Profile) sourcedFiles {
	f := sourcedFiles{plain: string(p.Plain().Canonical())}
	if p.Source != nil {
		f.sourced = string(p.Canonical())
	}
	return f
}

// planLimits decides what the nodes of a grid are given. before has been given to them, empty for nothing; profile is nil if
// there is none. No files are planned if there is nothing of that name to give: the nodes keep what they have.
func planLimits(before sourcedFiles, grid *api.OrderGrid, profile *api.RiskProfile, now time.Time) (s riskLimits) {
	given, err := limits.ParseProfile([]byte(cmp.Or(before.sourced, before.plain)))
	if err != nil { // there is none, or it was edited
		given, err = nil, nil
	}
	var made *limits.Profile
	if profile == nil {
		s.missing = true
	} else if made, err = checkedProfile(profile, grid.Spec.Matches()); err == nil {
		made.Source = sourceAfter(sourceOf(given), grid, profile, now, given != nil && bytes.Equal(given.Plain().Canonical(), made.Plain().Canonical()))
		_, err = limits.ParseProfile(made.Canonical())
	}
	if err != nil && !s.missing {
		s.invalid = err.Error()
	}
	switch named := given != nil && given.Name == grid.Spec.RiskProfile.Name; {
	case !s.missing && s.invalid == "" && !(named && isOlder(profile, given.Source)):
		s.begins = given == nil || given.Source == nil || made.Source.SinceMs != given.Source.SinceMs
		s.files = filesOf(made)
	case named:
		s.files = filesOf(given)
	}
	return s
}

// checkedProfile is a RiskProfile as the nodes have it, accepted by the code that the nodes have.
func checkedProfile(profile *api.RiskProfile, matches bool) (*limits.Profile, error) {
	p, err := limits.ParseProfile(profileText(profile).Canonical())
	if err != nil {
		return nil, err
	}
	if p.NeedsFills() && !matches {
		return nil, fmt.Errorf("creditThreshold, repeatedExecutions or priceCollar.lastBps, allowed: in a grid with spec.execution.mode Match, which knows executions")
	}
	return p, nil
}

func profileText(profile *api.RiskProfile) *limits.Profile {
	s := &profile.Spec
	p := &limits.Profile{Name: profile.Name, TraderTag: natural(s.TraderTag), DeskTag: natural(s.DeskTag), AlgorithmTag: natural(s.AlgorithmTag),
		MaxOrderVolume: s.MaxOrderVolume, MaxOrderValue: s.MaxOrderValue, DuplicateWindowMs: milliseconds(s.DuplicateWindow),
		RestrictedSymbols: s.RestrictedSymbols, AuthorisedPersons: s.AuthorisedPersons}
	if s.PriceDigits != nil {
		p.PriceDigits = ptr.To(int(*s.PriceDigits))
	}
	if s.QuantityDigits != nil {
		p.QuantityDigits = ptr.To(int(*s.QuantityDigits))
	}
	if c := s.PriceCollar; c != nil {
		p.PriceCollar = &limits.Collar{ReferenceBps: natural(c.ReferenceBps), LastBps: natural(c.LastBps), Least: c.Least}
	}
	if m := s.MaxMessages; m != nil {
		p.MaxMessages = &limits.Messages{PerSecond: natural(&m.PerSecond), Burst: natural(m.Burst), Reserve: natural(m.Reserve)}
	}
	if x := s.RepeatedExecutions; x != nil {
		p.RepeatedExecutions = &limits.RepeatedExecutions{Count: natural(&x.Count), WindowMs: milliseconds(x.Window)}
	}
	if c := s.CreditThreshold; c != nil {
		p.CreditThreshold = &limits.CreditThreshold{Total: c.Total, Default: c.Default}
		for _, v := range c.Clients {
			p.CreditThreshold.Clients = append(p.CreditThreshold.Clients, limits.Credit{Client: v.Client, Amount: v.Amount})
		}
	}
	for _, v := range s.ReferencePrices {
		p.ReferencePrices = append(p.ReferencePrices, limits.ReferencePrice{Symbol: v.Symbol, Price: v.Price})
	}
	return p
}

// natural is an optional number; the API server refuses negative ones.
func natural(n *int32) uint32 { return uint32(max(ptr.Deref(n, 0), 0)) }

// milliseconds of a window, rounded up: the next one is the shortest that is not less than what is asked for.
func milliseconds(d *metav1.Duration) uint32 {
	if d == nil {
		return 0
	}
	return uint32((min(max(d.Duration, 0), 24*time.Hour) + time.Millisecond - 1) / time.Millisecond)
}

// applyLimits keeps the ConfigMap that the nodes mount. It is an error if there is nothing to give to pods that have to start
// with limits: then none is made or replaced.
func (r *run) applyLimits(ctx context.Context) error {
	ref := r.grid.Spec.RiskProfile
	if ref == nil {
		return nil
	}
	var given corev1.ConfigMap
	name := client.ObjectKey{Namespace: r.grid.Namespace, Name: api.LimitsConfigMap(r.grid.Name)}
	if err := r.Live.Get(ctx, name, &given); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read ConfigMap %s: %w", name.Name, err)
	}
	profile := &api.RiskProfile{}
	switch err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.grid.Namespace, Name: ref.Name}, profile); {
	case apierrors.IsNotFound(err):
		profile = nil
	case err != nil:
		return fmt.Errorf("read RiskProfile %s: %w", ref.Name, err)
	}
	before := sourcedFiles{given.Data[limitsSourcedKey], given.Data[limitsKey]}
	plan := planLimits(before, r.grid, profile, r.Clock.Now())
	if plan.begins {
		if err := r.reread(ctx, profile, func(grid *api.OrderGrid) bool { return grid.Spec.RiskProfile != nil && *grid.Spec.RiskProfile == *ref }); err != nil {
			return err
		}
		plan = planLimits(before, r.grid, profile, r.Clock.Now())
	}
	r.limits = &plan
	if plan.files.plain == "" {
		return &unguardedError{plan.trouble(r.grid)}
	}
	data := map[string]string{limitsKey: plan.files.plain}
	if plan.files.sourced != "" {
		data[limitsSourcedKey] = plan.files.sourced
	}
	// What an operator writes that was the leader before must not take the place of it: it is of the version that was read.
	meta := gridMeta(r.grid, name.Name)
	meta.ResourceVersion = given.ResourceVersion
	_, err := r.applier.Apply(ctx, r.grid, &corev1.ConfigMap{ObjectMeta: meta, Data: data})
	return err
}

// trouble is why the nodes are not given what spec.riskProfile names, empty if they are.
func (s *riskLimits) trouble(grid *api.OrderGrid) string {
	name := grid.Spec.RiskProfile.Name
	switch {
	case s.missing:
		return fmt.Sprintf("there is no RiskProfile %s in namespace %s; create it, or correct spec.riskProfile", name, grid.Namespace)
	case s.invalid != "":
		return fmt.Sprintf("RiskProfile %s is not given to the nodes: %s; correct it", name, s.invalid)
	}
	return ""
}

// gridsOfProfile maps a RiskProfile to the grids that name it.
func (r *Reconciler) gridsOfProfile(ctx context.Context, profile client.Object) (all []reconcile.Request) {
	var grids api.OrderGridList
	if err := r.Client.List(ctx, &grids, client.InNamespace(profile.GetNamespace())); err != nil {
		return nil // from the cache: it does not fail
	}
	for i := range grids.Items {
		g := &grids.Items[i]
		if g.Spec.RiskProfile != nil && g.Spec.RiskProfile.Name == profile.GetName() {
			all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: g.Namespace, Name: g.Name}})
		}
	}
	return all
}
