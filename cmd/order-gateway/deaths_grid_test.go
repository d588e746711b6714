package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/subscriber"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// deaths is a grid whose nodes and gateways are killed under orders, and subscribers that come back with their positions.
type deaths struct {
	*testing.T
	grid     *testgrid.Grid
	c        *client.Client
	gateways [2]atomic.Pointer[process]
	all      []*subscriber.Subscriber
	faulty   []*subscriber.Subscriber // of the negative control: a message was lost on their way, or comes twice
	got      []atomic.Int64           // messages of each of all
	sent     atomic.Int64             // orders
	gone     atomic.Bool              // a subscriber, or the load, has ended before it was to
	ends     atomic.Pointer[map[int]uint64]
	reading  sync.WaitGroup

	begun, told                       time.Time
	primaryKills, nodeKills, gateKill int
}

const (
	// mostAhead is how many orders the slowest subscriber may be behind: what waits for it is bounded, and a machine that
	// is too slow for so many slows the orders.
	mostAhead = 1000
	// faultAt is the message that is lost or comes twice in the negative control.
	faultAt = 100
)

// smallGateway keeps so little that it has to read the grid's log for those who resume.
var smallGateway = []string{"--websocket-backlog", "0", "--websocket-ring-bytes", "1048576"}

// Primaries, other nodes and gateways are killed while orders come, ORDERGRID_STREAM_KILLS times each and until subscribers
// have got ORDERGRID_STREAM_MESSAGES messages, all subscriptions together. Each subscription gets each order of the log once,
// in the order of its partition, wherever it resumes. In the negative control one message is lost on its way to a subscriber,
// and one comes twice to another: the same judge has to say so.
func TestGridStreamsOverDeaths(t *testing.T) {
	kills, messages := number(t, "ORDERGRID_STREAM_KILLS", 1), number(t, "ORDERGRID_STREAM_MESSAGES", 10_000)
	subscribers := min(max(8, messages/20_000), 200)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(2+kills)*time.Minute+time.Duration(messages)*time.Second/2000)
	defer cancel()
	d := &deaths{T: t, grid: testgrid.Run(t), got: make([]atomic.Int64, subscribers)}
	var err error
	if d.c, err = client.Dial(ctx, client.Config{Endpoints: d.grid.Endpoints, RequestTimeout: 30 * time.Second}); err != nil {
		t.Fatal(err)
	}
	defer d.c.Close() //nolint:errcheck // it never fails
	submit(t, d.c, "BEFORE", 50)
	for i := range d.gateways {
		d.start(i)
	}
	d.listen(ctx)
	stop := d.load(ctx, 1+subscribers/25)
	rounds := 0
	for ; !d.gone.Load() && (rounds < kills || d.messages() < int64(messages)); rounds++ {
		d.round()
		d.tell(int64(messages))
	}
	stop()
	logged, ended := orders(t, d.c)
	d.ends.Store(&ended)
	d.reading.Wait()
	d.fromTheBeginning(ctx)
	d.judge(logged, rounds)
}

// number is a setting from 1.
func number(t *testing.T, name string, usual int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s: value %q, allowed: a number from 1", name, text)
	}
	return n
}

// start starts a gateway; the second one is small.
func (d *deaths) start(i int) {
	d.Helper()
	d.gateways[i].Store(startGateway(d.T, d.grid, "127.0.0.1:0", [][]string{nil, smallGateway}[i]...))
}

// listen connects subscribers, and waits until all are subscribed.
func (d *deaths) listen(ctx context.Context) {
	a, b := &d.gateways[0], &d.gateways[1]
	var subscribed sync.WaitGroup
	run := func(s *subscriber.Subscriber, ended func()) {
		subscribed.Add(1)
		known := sync.OnceFunc(subscribed.Done)
		d.reading.Go(func() {
			defer ended()
			defer known()
			s.Run(ctx, func(last map[int]uint64) bool {
				if last != nil {
					known()
				}
				return d.done(last)
			})
		})
	}
	for i := range d.got {
		s := subscriberAt(fmt.Sprint("subscriber ", i), a, b)
		if i%2 == 1 {
			s = subscriberAt(s.Name, b, a)
		}
		if i%3 == 2 {
			s.FlushMs = 40
		}
		s.Policy = "disconnect" // if it is too slow it comes back: nothing may be left out
		s.Each = func(int, string, json.RawMessage) error { d.got[i].Add(1); return nil }
		d.all = append(d.all, s)
		run(s, func() {
			if d.ends.Load() == nil {
				d.gone.Store(true)
			}
		})
	}
	for _, times := range []int{0, 2} {
		through := d.relay(faultAt, times)
		s := &subscriber.Subscriber{Name: fmt.Sprintf("one whose message %d came %d times", faultAt, times), Topics: "orders.>", Policy: "disconnect",
			Gateway: func(int) subscriber.Gateway { return through }}
		d.faulty = append(d.faulty, s)
		run(s, func() {})
	}
	subscribed.Wait()
}

// done reports whether a subscriber has all that it is to get.
func (d *deaths) done(last map[int]uint64) bool {
	want := d.ends.Load()
	if want == nil || last == nil {
		return false
	}
	for p, seq := range *want {
		if last[p] < seq {
			return false
		}
	}
	return true
}

// relay passes WebSockets on to the gateways in turn. The nth message that has a topic is passed on so many times.
func (d *deaths) relay(nth int64, times int) subscriber.Gateway {
	var connections, seen atomic.Int64
	protocol := []string{"ordergrid.json.v1"}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		gateway := d.gateways[connections.Add(1)%2].Load()
		to, _, err := websocket.Dial(ctx, "ws://"+gateway.addr+"/stream", &websocket.DialOptions{Subprotocols: protocol})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer to.CloseNow() //nolint:errcheck // it may be closed
		to.SetReadLimit(1 << 20)
		from, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: protocol})
		if err != nil {
			return
		}
		defer from.CloseNow() //nolint:errcheck // it may be closed
		go func() {
			defer to.CloseNow() //nolint:errcheck // it may be closed
			for {
				kind, b, err := from.Read(ctx)
				if err != nil || to.Write(ctx, kind, b) != nil {
					return
				}
			}
		}()
		for {
			kind, b, err := to.Read(ctx)
			if err != nil {
				return
			}
			n := 1
			if bytes.HasPrefix(b, []byte(`{"op":"message"`)) && seen.Add(1) == nth {
				n = times
			}
			for range n {
				if from.Write(ctx, kind, b) != nil {
					return
				}
			}
		}
	}))
	d.Cleanup(s.Close)
	return subscriber.Gateway{Address: s.Listener.Addr().String(), Token: testToken}
}

// load submits orders, each writer one after the other, until stop.
func (d *deaths) load(ctx context.Context, writers int) (stop func()) {
	var stopped atomic.Bool
	var all sync.WaitGroup
	d.begun, d.told = time.Now(), time.Now()
	for range writers {
		all.Go(func() {
			for !stopped.Load() {
				n := d.sent.Add(1)
				if _, err := d.c.Submit(ctx, testgrid.Order(fmt.Sprintf("STREAM-%d", n), 305)); err != nil {
					d.Errorf("order %d: %v", n, err)
					d.gone.Store(true)
					return
				}
				time.Sleep(time.Millisecond)
				for n-d.slowest() > mostAhead && !stopped.Load() && !d.gone.Load() {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	return func() { stopped.Store(true); all.Wait() }
}

// slowest is how many messages the subscriber has that has the fewest; messages is those of all.
func (d *deaths) slowest() int64 {
	least := d.got[0].Load()
	for i := range d.got {
		least = min(least, d.got[i].Load())
	}
	return least
}

func (d *deaths) messages() (sum int64) {
	for i := range d.got {
		sum += d.got[i].Load()
	}
	return sum
}

// round kills a primary, both gateways one after the other, and another node. All are started again.
func (d *deaths) round() {
	d.Helper()
	killPrimary(d.T, d.c, d.grid)
	d.primaryKills++
	time.Sleep(300 * time.Millisecond)
	for i := range d.gateways {
		d.gateways[i].Load().kill()
		d.gateKill++
		time.Sleep(200 * time.Millisecond)
		d.start(i)
	}
	waitForCopies(d.T, d.c)
	killNode(d.T, d.c, d.grid)
	d.nodeKills++
	waitForCopies(d.T, d.c)
}

// tell says every ten seconds how far it is.
func (d *deaths) tell(of int64) {
	if time.Since(d.told) < 10*time.Second {
		return
	}
	d.told = time.Now()
	n, took := d.messages(), time.Since(d.begun)
	left := max(0, time.Duration(float64(took)*float64(of-n)/float64(max(1, n))))
	d.Logf("%d of %d messages, %.0f/s, %v left; %s", n, of, float64(n)/took.Seconds(), left.Round(time.Second), d.killed())
}

func (d *deaths) killed() string {
	return fmt.Sprintf("killed: %d primaries, %d other nodes, %d gateways", d.primaryKills, d.nodeKills, d.gateKill)
}

// fromTheBeginning adds a subscriber that has nothing yet: what is before the gateway was started comes from the grid's log.
func (d *deaths) fromTheBeginning(ctx context.Context) {
	whole := subscriberAt("one from the beginning", &d.gateways[1])
	whole.Lineage, whole.First, whole.Last = d.all[0].Lineage, map[int]uint64{}, map[int]uint64{0: 0, 1: 0}
	whole.Run(ctx, d.done)
	read := regexp.MustCompile(`\nordergrid_stream_history_messages_total (\d+)\n`).FindStringSubmatch(metricsOf(d.T, d.gateways[1].Load()))
	if n, err := strconv.Atoi(read[1]); err != nil || n < 50 {
		d.Errorf("the gateway read %d orders from the log for it, want all before its own start", n)
	}
	d.all = append(d.all, whole)
}

// judge holds what each subscriber got against the log.
func (d *deaths) judge(logged map[int][]uint64, rounds int) {
	d.Helper()
	resumed, wrong := 0, 0
	for _, s := range d.all {
		if missed := s.Missed(logged); missed != "" {
			if wrong++; wrong <= 5 {
				d.Error(missed)
			}
		}
		resumed += s.Resumed
	}
	if resumed < len(d.all)*rounds {
		d.Errorf("%d sessions were resumed, want more than one of each client in a round: the test shows nothing", resumed)
	}
	for i, want := range []string{"differs", " behind "} {
		s := d.faulty[i]
		if text := s.Missed(logged); !strings.Contains(text, want) {
			d.Errorf("negative control, %s: the judge says %q, want %q in it", s.Name, text, want)
		} else {
			d.Logf("negative control, as it has to be: %s: %s", s.Name, text)
		}
	}
	d.Logf("%d messages of %d orders to %d subscriptions in %v; %s; %d sessions resumed; subscriptions with a gap or a duplicate: %d", d.messages(), d.sent.Load(), len(d.got),
		time.Since(d.begun).Round(time.Second), d.killed(), resumed, wrong)
}
