//go:build e2e

package witness

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	gridclient "github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// orders keeps a stream of orders going until the context ends: some faults show on a link that carries something only.
// The outcome of the orders is irrelevant here.
func (s *stage) orders(ctx context.Context) {
	service := &corev1.Service{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: api.ClientServiceName(gridName)}, service); err != nil {
		s.Fatal(err)
	}
	c, err := gridclient.Dial(ctx, gridclient.Config{Endpoints: []string{net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(api.DataPort))}, Grid: gridName})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	s.Cleanup(func() {
		cancel()
		_ = c.Close()
	})
	maker, err := fixorder.NewMaker(fixorder.FIX44, fixorder.ID{Run: fixorder.NewRun()})
	if err != nil {
		s.Fatal(err)
	}
	var answered atomic.Int64
	go func() {
		every := time.NewTicker(time.Millisecond)
		defer every.Stop()
		for n := int64(1); ctx.Err() == nil; n++ {
			now := <-every.C
			_ = c.SubmitAsync(maker.Make(n, n, now, now), func(gridclient.Receipt, error) { answered.Add(1) })
		}
	}()
	s.Cleanup(func() { s.Logf("%d orders were answered in that time", answered.Load()) })
}
