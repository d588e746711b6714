package ordergrid

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/instrument"
)

// Path of the instruments in a grid node. The kubelet replaces the file when the ConfigMap changes, and the node reads it
// again: an instrument that is added is defined by the primary of its partition, in an entry of its log.
const (
	instrumentsVolume = "instruments"
	instrumentsDir    = "/etc/ordergrid/instruments"
	instrumentsKey    = "instruments.json"
	calendarKey       = instrumentsKey + instrument.CalendarFileName // which nodes look for beside it
)

// executionArgs are the flags of a grid node that matches.
func executionArgs(grid *api.OrderGrid) []string {
	if !grid.Spec.Matches() {
		return nil
	}
	args := []string{"--execution", "match", "--instruments", path.Join(instrumentsDir, instrumentsKey)}
	if grid.Spec.Execution.SelfTrade == api.SelfTradeBySession {
		args = append(args, "--self-trade", "session")
	}
	return args
}

// instrumentsVolumeOf is the volume of a grid node.
func instrumentsVolumeOf(grid *api.OrderGrid) corev1.Volume {
	return corev1.Volume{Name: instrumentsVolume, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: api.InstrumentsConfigMap(grid.Name)},
		DefaultMode:          ptr.To[int32](0o444),
	}}}
}

// instruments is what a pass knows of spec.execution.instrumentsFrom.
type instruments struct {
	sha256  string   // of the file that the nodes are given; empty if there is none
	n       int      // instruments in it
	missing bool     // there is no such InstrumentSet
	invalid string   // why a new content is not given to the nodes
	kept    []string // what the InstrumentSet has otherwise, or not at all, and the nodes keep

	calendar givenCalendar
}

// planInstruments decides what the nodes are given: what they have, and what is new. before is the text that they have
// been given, "" for none; set is nil if there is none.
func planInstruments(before string, set *api.InstrumentSet) (text string, s instruments, err error) {
	var given []instrument.Text
	if before != "" {
		if given, err = instrument.ParseText([]byte(before)); err != nil {
			return "", s, err
		}
	}
	after := slices.Clone(given)
	if set != nil {
		after, s.kept = merge(given, set)
	}
	s.missing = set == nil
	if len(after) == 0 {
		return "", s, nil
	}
	made, err := json.MarshalIndent(after, "", "  ")
	if err != nil {
		return "", s, err
	}
	text, s.n = string(made)+"\n", len(after)
	if _, err := instrument.Parse([]byte(text)); err != nil { // the nodes would refuse it
		text, s.n, s.invalid = before, len(given), err.Error()
	}
	if text != "" {
		s.sha256 = fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	}
	return text, s, nil
}

// merge adds what is new to what was given, and names what the set has not, or otherwise.
func merge(given []instrument.Text, set *api.InstrumentSet) (after []instrument.Text, kept []string) {
	listed := map[string]instrument.Text{}
	for i := range set.Spec.Instruments {
		t := instrumentText(&set.Spec.Instruments[i])
		listed[t.Symbol] = t
	}
	after = slices.Clone(given)
	for _, t := range given {
		switch now, there := listed[t.Symbol]; {
		case !there:
			kept = append(kept, t.Symbol+" is not in it")
		case now != t:
			kept = append(kept, t.Symbol+" is another there")
		}
		delete(listed, t.Symbol)
	}
	for i := range set.Spec.Instruments {
		if t, isNew := listed[set.Spec.Instruments[i].Symbol]; isNew {
			after = append(after, t)
		}
	}
	return after, kept
}

func instrumentText(in *api.Instrument) instrument.Text {
	return instrument.Text{Symbol: in.Symbol, Tick: in.Tick, Lot: cmp.Or(in.Lot, "1"), Low: in.Band.Low, High: in.Band.High, Reference: in.Reference,
		State: strings.ToLower(string(cmp.Or(in.State, api.InstrumentOpen)))}
}

// applyInstruments keeps the ConfigMap that the nodes mount. What they were given once stays in it.
func (r *run) applyInstruments(ctx context.Context) error {
	if !r.grid.Spec.Matches() {
		return nil
	}
	var given corev1.ConfigMap
	name := client.ObjectKey{Namespace: r.grid.Namespace, Name: api.InstrumentsConfigMap(r.grid.Name)}
	if err := r.Live.Get(ctx, name, &given); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("read ConfigMap %s: %w", name.Name, err)
	}
	set := &api.InstrumentSet{}
	switch err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.grid.Namespace, Name: r.grid.Spec.Execution.InstrumentsFrom.Name}, set); {
	case apierrors.IsNotFound(err):
		set = nil
	case err != nil:
		return fmt.Errorf("read InstrumentSet %s: %w", r.grid.Spec.Execution.InstrumentsFrom.Name, err)
	}
	text, plan, err := planInstruments(given.Data[instrumentsKey], set)
	if err != nil {
		return fmt.Errorf("ConfigMap %s, key %s: %w; if it was edited, put back what the operator wrote", name.Name, instrumentsKey, err)
	}
	before := given.Data[calendarKey]
	if plan.calendar = planCalendar(before, r.grid, set, r.Clock.Now()); plan.calendar.begins {
		from := *r.grid.Spec.Execution.InstrumentsFrom
		err := r.reread(ctx, set, func(grid *api.OrderGrid) bool {
			return grid.Spec.Matches() && *grid.Spec.Execution.InstrumentsFrom == from
		})
		if err != nil {
			return err
		}
		plan.calendar = planCalendar(before, r.grid, set, r.Clock.Now())
	}
	r.instruments = &plan
	if text == "" {
		return nil
	}
	data := map[string]string{instrumentsKey: text}
	if plan.calendar.text != "" {
		data[calendarKey] = plan.calendar.text
	}
	objectMeta := gridMeta(r.grid, name.Name)
	objectMeta.ResourceVersion = given.ResourceVersion // what an earlier leader writes does not take the place of it
	_, err = r.applier.Apply(ctx, r.grid, &corev1.ConfigMap{ObjectMeta: objectMeta, Data: data})
	return err
}

// gridsOfInstruments maps an InstrumentSet to the grids that trade it.
func (r *Reconciler) gridsOfInstruments(ctx context.Context, set client.Object) (all []reconcile.Request) {
	var grids api.OrderGridList
	if err := r.Client.List(ctx, &grids, client.InNamespace(set.GetNamespace())); err != nil {
		return nil // from the cache: it does not fail
	}
	for i := range grids.Items {
		g := &grids.Items[i]
		if g.Spec.Matches() && g.Spec.Execution.InstrumentsFrom.Name == set.GetName() {
			all = append(all, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: g.Namespace, Name: g.Name}})
		}
	}
	return all
}
