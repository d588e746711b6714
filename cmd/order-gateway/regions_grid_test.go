package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/subscriber"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// withRegions starts a grid with regions positions and secret.
func withRegions(t *testing.T, args ...string) *testgrid.Grid {
	t.Helper()
	file := filepath.Join(t.TempDir(), "regions.yaml")
	if err := os.WriteFile(file, []byte("memory: 256Mi\nregions: [{name: secret}, {name: positions}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	return testgrid.Run(t, append(append([]string{}, args...), "--", "--regions", file)...)
}

// regionReader writes a file of clients with one that may read some topics.
func regionReader(t *testing.T, topics ...string) string {
	t.Helper()
	return regionPublisher(t, "user.none", topics...)
}

// regionPublisher writes one with a client that may publish, too.
func regionPublisher(t *testing.T, publish string, topics ...string) string {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	list, err := json.Marshal(topics)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(filepath.Dir(token), "clients.json")
	for name, text := range map[string]string{token: testToken + "\n", file: fmt.Sprintf(`{"clients": [{"name": "all", "tokenFile": %q, "topics": %s, "publish": [%q]}]}`, token, list, publish)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

// mirror is a region as one makes it of its messages.
type mirror map[int]map[string]held // by partition

type held struct {
	value   []byte
	expires time.Time
}

// apply is subscriber.Subscriber.Each.
func (m mirror) apply(partition int, topic string, data json.RawMessage) error {
	var c struct {
		Received               time.Time
		Kind, Region, Key      string
		KeyBase64, Base64      []byte
		Value                  json.RawMessage
		Offset, Omitted, Epoch int
		Expires                time.Time
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil || c.Region != "positions" || c.Omitted != 0 || !strings.HasPrefix(topic, "region.positions.") {
		return fmt.Errorf("%s: %s: %w", topic, data, errors.Join(errors.New("not expected"), err))
	}
	if m[partition] == nil {
		m[partition] = map[string]held{}
	}
	key, value := c.Key+string(c.KeyBase64), c.Base64
	if c.Value != nil {
		value = c.Value
	}
	at, there := m[partition][key]
	if !there && (c.Kind == "patch" || c.Kind == "remove" || c.Kind == "take") {
		return fmt.Errorf("%s of %q, which is not there", c.Kind, key)
	}
	switch c.Kind {
	case "put":
		m[partition][key] = held{value, c.Expires}
	case "patch":
		v := bytes.Clone(at.value)
		if grow := c.Offset + len(value) - len(v); grow > 0 {
			v = append(v, make([]byte, grow)...)
		}
		copy(v[c.Offset:], value)
		m[partition][key] = held{v, at.expires}
	case "remove", "take":
		delete(m[partition], key)
	case "clear":
		clear(m[partition])
	default:
		return fmt.Errorf("kind is %q", c.Kind)
	}
	return nil
}

// differs compares a mirror with the region.
func (m mirror) differs(ctx context.Context, r *client.Region) (text string) {
	n, now := 0, time.Now()
	err := r.Scan(ctx, nil, func(e client.Entry) error {
		n++
		if at := m[int(e.Partition)][string(e.Key)]; !bytes.Equal(at.value, e.Value) {
			text = fmt.Sprintf("%q is %q, the grid has %q", e.Key, at.value, e.Value)
		}
		return nil
	})
	for _, part := range m {
		for _, at := range part {
			if at.expires.IsZero() || at.expires.After(now) {
				n--
			}
		}
	}
	if err != nil || n != 0 {
		return fmt.Sprintf("%d entries are missing, %v; %s", n, err, text)
	}
	return text
}

// changesOf are the entries of the log that change a region, of a key or of all, and the last of each partition.
func changesOf(t *testing.T, c *client.Client, region, key string) (logged map[int][]uint64, ends map[int]uint64) {
	t.Helper()
	logged, ends = map[int][]uint64{}, map[int]uint64{}
	for _, p := range c.Table() {
		number := -1
		_, err := c.ReadLog(t.Context(), p.ID, "", 1, func(e client.LogEntry) error {
			if e.Kind != order.KindRegion {
				return nil
			}
			o := order.RegionOf(order.Payload(e.Bytes))
			if o.Op == order.RegionDefine && string(o.Key) == region {
				number = int(o.Region)
			}
			if o.Op >= order.RegionPut && int(o.Region) == number && (key == "" || key == string(o.Key)) {
				logged[int(p.ID)] = append(logged[int(p.ID)], e.Seq)
				ends[int(p.ID)] = e.Seq
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return logged, ends
}

// changes changes regions until stop, at random, of keys that are of this one alone.
func changes(ctx context.Context, c *client.Client, who int, stop *atomic.Bool) (n int, err error) {
	rng := rand.New(rand.NewPCG(22, uint64(who)))
	positions, secret := c.Region("positions"), c.Region("secret")
	for ; !stop.Load() && ctx.Err() == nil; n++ {
		key := fmt.Appendf(nil, "w%d.k%d\xff", who, rng.IntN(12))
		value := fmt.Appendf(nil, `{"n": %d}`, n)
		switch rng.IntN(12) {
		case 0:
			_, err = positions.Remove(ctx, key)
		case 1:
			_, _, err = positions.Take(ctx, key)
		case 2, 3:
			_, err = positions.Patch(ctx, key, rng.IntN(4), []byte(strconv.Itoa(n)))
		case 4:
			_, err = positions.Put(ctx, key, value, client.Expires(time.Millisecond))
		case 5:
			_, err = positions.Put(ctx, key, []byte{0xff, byte(n)})
		case 6:
			_, err = secret.Put(ctx, key, value)
		case 7:
			if rng.IntN(8) == 0 {
				err = positions.Clear(ctx)
			}
		default:
			_, err = positions.Put(ctx, key, value)
		}
		var absent *client.ConditionError
		if err != nil && !errors.As(err, &absent) && !errors.Is(err, client.ErrNotFound) && !errors.Is(err, client.ErrTooLarge) {
			return n, fmt.Errorf("change %d: %w", n, err)
		}
		time.Sleep(time.Millisecond)
	}
	return n, nil
}

// A primary and gateways, of which one follows only what is wanted, are killed while a region is changed. Each client gets
// each change once, in the order of its partition, wherever it resumes, and has then what the grid has.
func TestGridRegionStreamsOverDeaths(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	g := withRegions(t)
	c := clientOf(t, g)
	clients := regionReader(t, "region.positions.>", "grid.status")
	args := []string{"--websocket-clients", clients, "--websocket-regions", "positions"}
	wanted := append([]string{"--websocket-follow", "wanted", "--websocket-ring-bytes", "1048576"}, args...)
	var a, b atomic.Pointer[process]
	a.Store(startGateway(t, g, "127.0.0.1:0", args...))
	b.Store(startGateway(t, g, "127.0.0.1:0", wanted...))
	lineage := regionLineage(t, ctx, a.Load())

	var stop atomic.Bool
	loads := make(chan error, 3)
	var made atomic.Int64
	for who := range cap(loads) {
		go func() {
			n, err := changes(ctx, c, who, &stop)
			made.Add(int64(n))
			loads <- err
		}()
	}
	var ends atomic.Pointer[map[int]uint64]
	done := func(last map[int]uint64) bool {
		want := ends.Load()
		if want == nil {
			return false
		}
		for p, seq := range *want {
			if last[p] < seq {
				return false
			}
		}
		return true
	}
	var all sync.WaitGroup
	var subscribers []*subscriber.Subscriber
	var mirrors []mirror
	for i := range 6 {
		s := subscriberAt(fmt.Sprint("subscriber ", i), &a, &b)
		if i%2 == 1 {
			s = subscriberAt(s.Name, &b, &a)
		}
		s.Topics, s.Lineage, s.First, s.Last = "region.positions.>", lineage, map[int]uint64{}, map[int]uint64{0: 0, 1: 0}
		m := mirror{}
		s.Each = m.apply
		subscribers, mirrors = append(subscribers, s), append(mirrors, m)
		all.Go(func() { s.Run(ctx, done) })
	}
	time.Sleep(500 * time.Millisecond)
	killPrimary(t, c, g)
	time.Sleep(500 * time.Millisecond)
	for _, at := range []*atomic.Pointer[process]{&a, &b} {
		at.Load().kill()
		time.Sleep(200 * time.Millisecond)
		if at == &a {
			at.Store(startGateway(t, g, "127.0.0.1:0", args...))
		} else {
			at.Store(startGateway(t, g, "127.0.0.1:0", wanted...))
		}
	}
	waitForCopies(t, c)
	time.Sleep(500 * time.Millisecond)
	stop.Store(true)
	for range cap(loads) {
		if err := <-loads; err != nil {
			t.Error(err)
		}
	}
	logged, ended := changesOf(t, c, "positions", "")
	ends.Store(&ended)
	all.Wait()
	resumed := 0
	for i, s := range subscribers {
		if missed := s.Missed(logged); missed != "" {
			t.Error(missed)
		} else if text := mirrors[i].differs(ctx, c.Region("positions")); text != "" {
			t.Errorf("%s: %s", s.Name, text)
		}
		resumed += s.Resumed
	}
	if resumed < 2*len(subscribers) {
		t.Errorf("%d sessions were resumed, want more than one of each client: the test shows nothing", resumed)
	}
	// One key, from the log alone.
	one := subscriberAt("one key", &b)
	one.Topics, one.Lineage, one.First, one.Last = "region.positions.w1%2Ek3%FF", lineage, map[int]uint64{}, map[int]uint64{0: 0, 1: 0}
	of, last := changesOf(t, c, "positions", "w1.k3\xff")
	ends.Store(&last)
	one.Run(ctx, done)
	if missed := one.Missed(of); missed != "" || len(of) != 1 {
		t.Error(missed, len(of))
	}
	t.Logf("%d operations, %d and %d changes, %d resumed sessions", made.Load(), len(logged[0]), len(logged[1]), resumed)
}

// regionLineage is the number in front of positions.
func regionLineage(t *testing.T, ctx context.Context, at *process) (lineage string) {
	t.Helper()
	_ = at.client().Talk(ctx, []string{`{"op":"subscribe","id":1,"topics":"region.positions.none"}`}, func() bool { return lineage != "" }, func(b []byte) error {
		var m struct{ Op, Position string }
		if err := json.Unmarshal(b, &m); err != nil {
			return err
		}
		if m.Op == "subscribed" {
			lineage, _, _ = strings.Cut(m.Position, ".")
		}
		return nil
	})
	if lineage == "" {
		t.Fatal("the gateway tells no position")
	}
	return lineage
}

// A client that leaves within a batch resumes there, from the ring of a gateway and from the log: it gets the rest, once.
func TestGridRegionBatchIsResumed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g := withRegions(t)
	c := clientOf(t, g)
	args := []string{"--websocket-clients", regionReader(t, "region.positions.>"), "--websocket-regions", "positions"}
	at := startGateway(t, g, "127.0.0.1:0", args...)
	lineage := regionLineage(t, ctx, at)
	var entries []client.Entry
	for i := range 200 {
		entries = append(entries, client.Entry{Key: fmt.Appendf(nil, "k%03d", i), Value: []byte("1")})
	}
	if got, err := c.Region("positions").PutAll(ctx, entries); err != nil || got.Changed != 200 || got.Batches != 2 {
		t.Fatalf("put %+v (%v), want two batches: one of each partition", got, err)
	}
	// read returns n messages of partition 0 behind a position: their positions and keys.
	read := func(at *process, after string, n int) (places, keys []string) {
		t.Helper()
		subscribe := fmt.Sprintf(`{"op":"subscribe","id":1,"topics":"region.positions.>","resume":"%s.p0:%s,p1:0"}`, lineage, after)
		if err := at.client().Talk(ctx, []string{subscribe}, func() bool { return len(keys) >= n }, func(b []byte) error {
			var m struct {
				Op, At    string
				Partition int
				Data      struct{ Key string }
			}
			if err := json.Unmarshal(b, &m); err != nil || m.Op == "error" {
				return errors.Join(err, fmt.Errorf("%s", b))
			}
			if m.Op == "message" && m.Partition == 0 {
				places, keys = append(places, m.At), append(keys, m.Data.Key)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return places, keys
	}
	of := 0
	for i := range entries {
		if c.RouteClOrdID(entries[i].Key) == 0 {
			of++
		}
	}
	places, keys := read(at, "0", of)
	entry, _, _ := strings.Cut(places[0], ".")
	if places[0] != entry || places[1] != entry+".1" || places[of-1] != fmt.Sprintf("%s.%d", entry, of-1) {
		t.Fatalf("positions %v, want %d of one entry", places, of)
	}
	if _, rest := read(at, places[of/2], of-of/2-1); fmt.Sprint(rest) != fmt.Sprint(keys[of/2+1:]) {
		t.Errorf("behind %s: %v, want %v", places[of/2], rest, keys[of/2+1:])
	}
	at.kill()
	later := startGateway(t, g, "127.0.0.1:0", args...)
	if _, rest := read(later, places[of/2], of-of/2-1); fmt.Sprint(rest) != fmt.Sprint(keys[of/2+1:]) {
		t.Errorf("behind %s, at another gateway: %v, want %v", places[of/2], rest, keys[of/2+1:])
	}
	wanted := startGateway(t, g, "127.0.0.1:0", append(args, "--websocket-follow", "wanted")...)
	if _, rest := read(wanted, places[of/2], of-of/2-1); fmt.Sprint(rest) != fmt.Sprint(keys[of/2+1:]) {
		t.Errorf("behind %s, from the log: %v, want %v", places[of/2], rest, keys[of/2+1:])
	}
}
