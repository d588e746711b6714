package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// What a grid has.
const (
	shards   = 3
	replicas = 2
)

const (
	// calm is how long the operator has to reconcile nothing to be done.
	calm = 8 * time.Second
	// patience with any one thing that is waited for.
	patience = 45 * time.Minute
	// creators make grids at the same time.
	creators = 8
)

// Options of Run.
type Options struct {
	Root     string // the checkout
	Dir      string // for logs and configuration; has to be empty or not there
	KWOK     string // directory of the program kwok
	Operator string // the program
	Rest     time.Duration
	Say      func(format string, args ...any)
}

// Run measures so many grids, in a control plane of their own.
func Run(ctx context.Context, o Options, grids int) (result *Result, err error) {
	if old, _ := filepath.Glob(filepath.Join(o.Dir, "*")); len(old) > 0 {
		return nil, fmt.Errorf("%s is not empty; name a directory for this run alone", o.Dir)
	}
	pods := grids * shards * replicas
	o.Say("%d grids: start a control plane, KWOK and the operator", grids)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c, err := start(ctx, o, pods, cancel)
	if err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	nodes, err := newGridNodes(c.admin, c.client, func(err error) { cancel(fmt.Errorf("a grid node that is played: %w", err)) })
	defer func() {
		cancel(nil)
		if nodes != nil {
			nodes.wait.Wait()
		}
		err = errors.Join(err, c.stop())
	}()
	if err != nil {
		return nil, err
	}
	sight, err := c.watch(ctx, nodes)
	if err != nil {
		return nil, err
	}
	m := &measurement{Options: o, cluster: c, sight: sight, grids: grids, result: &Result{Grids: grids, Pods: pods}}
	for _, phase := range []func(context.Context) error{m.create, m.rest, m.react, m.restart, m.count} {
		if err := phase(ctx); err != nil {
			return nil, fmt.Errorf("%d grids: %w; logs are in %s", grids, errors.Join(err, context.Cause(ctx)), o.Dir)
		}
	}
	return m.result, nil
}

// measurement is one run.
type measurement struct {
	Options
	*cluster
	sight    *sight
	grids    int
	operator *operator
	result   *Result
}

// create makes all grids at once and waits until all are steady and the operator has nothing to do.
func (m *measurement) create(ctx context.Context) (err error) {
	if m.operator, err = m.operate(ctx, m.Operator); err != nil {
		return err
	}
	before, err := m.operator.settled(ctx, 0)
	if err != nil {
		return err
	}
	m.Say("%d grids: create them", m.grids)
	began := time.Now()
	if err := m.createGrids(ctx); err != nil {
		return err
	}
	m.result.Created = time.Since(began).Seconds()
	told := time.Now()
	var last time.Time
	if err := until(ctx, "all grids are steady", func(context.Context) (ok bool, err error) {
		if time.Since(told) > 20*time.Second {
			told = time.Now()
			m.Say("%d grids: %d are steady after %.0f s", m.grids, m.sight.count(), time.Since(began).Seconds())
		}
		last, ok = m.sight.all(m.grids)
		return ok, nil
	}); err != nil {
		return err
	}
	m.result.Steady = last.Sub(began).Seconds()
	after, err := m.operator.settled(ctx, float64(m.grids))
	if err != nil {
		return err
	}
	m.result.Create, err = m.phase(before, after, began, after.at)
	return err
}

func (m *measurement) createGrids(ctx context.Context) error {
	names := make(chan int)
	errs := make(chan error, creators)
	var wg sync.WaitGroup
	for range creators {
		wg.Go(func() {
			for i := range names {
				grid := &api.OrderGrid{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("grid-%04d", i), Namespace: namespace},
					Spec:       api.OrderGridSpec{Shards: shards, Replicas: replicas, Partitions: shards * replicas, Memory: resource.MustParse("64Mi"), Security: api.SecuritySpec{Insecure: api.InsecureAccept}},
				}
				if err := m.client.Create(ctx, grid); err != nil {
					errs <- err
					for range names { // no other may wait for this one
					}
					return
				}
			}
		})
	}
	for i := range m.grids {
		names <- i
	}
	close(names)
	wg.Wait()
	close(errs)
	return <-errs
}

// rest observes an idle grid.
func (m *measurement) rest(ctx context.Context) error {
	m.Say("%d grids: look on for %v while nothing happens", m.grids, m.Rest)
	before, err := m.operator.readAll(ctx)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(m.Rest):
	}
	after, err := m.operator.readAll(ctx)
	if err != nil {
		return err
	}
	m.result.Heap, m.result.Processes = int64(after.heap), after.processes
	m.result.Rest, err = m.phase(before, after, before.at, after.at)
	return err
}

// reactions is how often react deletes something.
const reactions = 20

// react deletes what the operator has made, one after the other, and waits until it is back.
func (m *measurement) react(ctx context.Context) error {
	for i := range reactions {
		name := api.ClientServiceName(fmt.Sprintf("grid-%04d", i*m.grids/reactions))
		key := client.ObjectKey{Namespace: namespace, Name: name}
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := m.client.Get(ctx, key, service); err != nil {
			return err
		}
		old, began := service.UID, time.Now()
		if err := m.client.Delete(ctx, service); err != nil {
			return err
		}
		for ctx.Err() == nil && (m.client.Get(ctx, key, service) != nil || service.UID == old) {
			time.Sleep(time.Millisecond)
		}
		m.result.Reactions = append(m.result.Reactions, 1000*time.Since(began).Seconds())
	}
	_, err := m.operator.settled(ctx, 0)
	return err
}

// restart ends the operator and starts it again.
func (m *measurement) restart(ctx context.Context) error {
	m.Say("%d grids: restart the operator", m.grids)
	if err := m.operator.stop(); err != nil {
		return err
	}
	began := time.Now()
	o, err := m.operate(ctx, m.Operator)
	if err != nil {
		return err
	}
	m.operator = o
	after, err := o.settled(ctx, float64(m.grids))
	if err != nil {
		return err
	}
	m.result.Restarted = after.at.Sub(began).Seconds()
	m.result.Restart, err = m.phase(nil, after, began, after.at)
	if err == nil {
		m.result.RestartHeap, m.result.RestartRSS = int64(after.heap), after.processes["operator"].RSS
	}
	return err
}

// count returns how many objects of each kind the operator's cache follows.
func (m *measurement) count(ctx context.Context) error {
	m.result.Objects = map[string]int{}
	for name, list := range map[string]client.ObjectList{
		"OrderGrid": &api.OrderGridList{}, "GridPartition": &api.GridPartitionList{}, "StatefulSet": &appsv1.StatefulSetList{}, "Pod": &corev1.PodList{},
	} {
		if err := m.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		m.result.Objects[name] = listLength(list)
	}
	info, err := os.Stat(m.file("audit.log"))
	if err == nil && info.Size() == 0 {
		err = errors.New("the audit log is empty")
	}
	return err
}
