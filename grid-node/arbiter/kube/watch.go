package kube

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/arbiter"
)

// A watch of a grid is a list and a stream of the changes after it. The list has no
// resource version, so it is current (an etcd quorum, or the API server's cache once it
// has caught up with etcd), and no limit, since pages never come from the cache. The
// stream begins at the list's version. However it ends, the next begins with a list: so an
// expired version (410 Gone) takes the same path as a lost connection, and no bookmarks
// are needed.
const (
	listTimeout = 30 * time.Second
	// The server ends a stream after one to two times this; then everything is listed
	// again. It bounds how long a change lost by the stream stays unseen, and is random,
	// so that the nodes of a grid do not list at the same moment.
	streamTime = 15 * time.Minute
	// Client-side limit for a server that does not end it.
	streamSpare = 30 * time.Second
)

// Watch implements arbiter.Arbiter: one list and one stream for all records of a grid,
// by the grid's label.
func (a *Arbiter) Watch(ctx context.Context, grid string, f func(arbiter.News, error)) error {
	const minPause, maxPause = 100 * time.Millisecond, 5 * time.Second
	pause := minPause
	for ctx.Err() == nil {
		began := time.Now()
		err := a.watchOnce(ctx, grid, f)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			f(arbiter.News{}, err)
		}
		if time.Since(began) > maxPause {
			pause = minPause // it worked for a while
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, maxPause)
	}
	return ctx.Err()
}

// watchOnce reads all records and follows them until the stream ends.
func (a *Arbiter) watchOnce(ctx context.Context, grid string, f func(arbiter.News, error)) error {
	opts := metav1.ListOptions{LabelSelector: labels.Set{v1alpha1.LabelGrid: grid}.String()}
	list, err := a.list(ctx, opts)
	if err != nil {
		return fmt.Errorf("list the gridpartitions of grid %s/%s: %w", a.namespace, grid, err)
	}
	news := arbiter.News{All: true}
	for i := range list.Items {
		if gp := &list.Items[i]; gp.Spec.GridRef.Name == grid { // the label alone does not decide
			news.Records = append(news.Records, a.seen(gp))
		}
	}
	f(news, nil)
	stream := streamTime + rand.N(streamTime)
	ctx, cancel := context.WithTimeout(ctx, stream+streamSpare)
	defer cancel()
	seconds := int64(stream / time.Second)
	opts.Watch, opts.ResourceVersion, opts.TimeoutSeconds = true, list.ResourceVersion, &seconds
	w, err := a.client.Get().Namespace(a.namespace).Resource(resourceName).VersionedParams(&opts, a.params).Watch(ctx)
	if err != nil {
		return fmt.Errorf("watch the gridpartitions of grid %s/%s: %w", a.namespace, grid, err)
	}
	defer w.Stop()
	for ev := range w.ResultChan() {
		switch gp, ok := ev.Object.(*v1alpha1.GridPartition); {
		case ev.Type == watch.Error:
			return fmt.Errorf("watch the gridpartitions of grid %s/%s: %w", a.namespace, grid, apierrors.FromObject(ev.Object))
		case !ok || gp.Spec.GridRef.Name != grid:
		case ev.Type == watch.Deleted:
			a.uids.Delete(gp.Name)
			f(arbiter.News{Gone: []string{gp.Name}}, nil)
		default:
			f(arbiter.News{Records: []arbiter.Record{a.seen(gp)}}, nil)
		}
	}
	return nil // the server ends a stream now and then; begin again
}

func (a *Arbiter) list(ctx context.Context, opts metav1.ListOptions) (*v1alpha1.GridPartitionList, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list := &v1alpha1.GridPartitionList{}
	return list, a.client.Get().Namespace(a.namespace).Resource(resourceName).VersionedParams(&opts, a.params).Do(ctx).Into(list)
}

// seen converts an object and remembers its UID for events.
func (a *Arbiter) seen(gp *v1alpha1.GridPartition) arbiter.Record {
	a.uids.Store(gp.Name, gp.UID)
	return FromObject(gp)
}
