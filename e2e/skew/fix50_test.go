package skew

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/node"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// TestFix50ComesWithTheUpdate: with real programs of the release before, orders of FIX 5.0 SP2 are
// refused until both nodes are updated, and a node that goes back to that release does not get the
// log with such an order.
func TestFix50ComesWithTheUpdate(t *testing.T) {
	before, now := before(t), present(t)
	web := nodestatus.NewClient(5*time.Second, nil)
	p, c := begun(t, before, web)
	maker, err := fixorder.NewMaker(fixorder.FIX44, fixorder.ID{Run: fixorder.NewRun()})
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	submit := func(to wire.PartitionID) error {
		n++
		fix := append([]byte("8=FIXT.1.1"), maker.Make(n, n, time.Now(), time.Now())[len("8=FIX.4.4"):]...)
		order.Seal(fix)
		_, err := c.SubmitTo(t.Context(), to, fix)
		return err
	}
	p.stop(1)
	p.start(1, now)
	p.whole(web)
	for range 3 {
		if err := submit(0); !errors.Is(err, client.ErrBadFIX) {
			t.Errorf("a primary of the release before: %v, want %v", err, client.ErrBadFIX)
		}
		if err := submit(1); !errors.Is(err, client.ErrVersionAwaited) {
			t.Errorf("a backup of the release before: %v, want %v", err, client.ErrVersionAwaited)
		}
	}
	p.stop(0)
	p.start(0, now)
	p.whole(web)
	for i := range 2 {
		p.until("an order of FIX 5.0 SP2 is taken by partition "+strconv.Itoa(i), func() bool {
			err := submit(wire.PartitionID(i))
			if err != nil && !errors.Is(err, client.ErrVersionAwaited) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	p.stop(1)
	p.start(1, before)
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		s, err := nodestatus.Get(t.Context(), web, p.http[0])
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			if own := s.Find(node.PartitionName("g", i)); own != nil && len(own.InSync) > 1 {
				t.Fatalf("%s has the copies %+v, one of them of a release that does not know the version of its orders", node.PartitionName("g", i), own.InSync)
			}
		}
	}
	p.stop(1)
	p.start(1, now)
	p.whole(web)
}
