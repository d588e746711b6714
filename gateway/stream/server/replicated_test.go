package server

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

// store is a grid that answers when it is told to.
type store struct {
	mu    sync.Mutex
	wants []string // topic and data
	done  []func(Stored, error)
}

func (g *store) replicate(topic, data []byte, stored func(Stored, error)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if strings.HasSuffix(string(topic), ".refused") {
		return fmt.Errorf("topic of publish is %q", topic)
	}
	g.wants, g.done = append(g.wants, string(topic)+" "+string(data)), append(g.done, stored)
	return nil
}

// answer answers what came first.
func (g *store) answer(t *testing.T, want string, at Stored, err error) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		g.mu.Lock()
		if len(g.done) > 0 {
			break
		}
		g.mu.Unlock()
		if time.Now().After(end) {
			t.Fatalf("%s is not to be stored", want)
		}
	}
	got, done := g.wants[0], g.done[0]
	g.wants, g.done = g.wants[1:], g.done[1:]
	g.mu.Unlock()
	if got != want {
		t.Errorf("to be stored is %q, want %q", got, want)
	}
	done(at, err)
}

// A message that is replicated is answered when it is stored, with its position, or with what became of it.
func TestReplicated(t *testing.T) {
	kinds(t, func(t *testing.T, kind transport.Kind) {
		g := &store{}
		s, addr := start(t, kind, publishers(func(c *Config) { c.Replicate = g.replicate }))
		desk, raw := publisher(t, addr, JSON, "desk", "region.positions.>"), publisher(t, addr, Binary, "raw", "region.positions.>")
		reader := publisher(t, addr, JSON, "reader", "")
		reader.send(`{"op":"subscribe","id":7,"topics":">"}`)
		reader.want(`"op":"subscribed"`)
		desk.send(`{"op":"publish","id":3,"topic":"region.positions.a","data":{"qty": 1},"replicated":true}`)
		g.answer(t, `region.positions.a {"qty": 1}`, Stored{Partition: 1, At: fanout.Position{Seq: 17}}, nil)
		desk.want(`{"op":"published","id":3,"partition":1,"at":"17"}`)
		desk.send(`{"op":"publish","topic":"region.positions.b","base64":"AAE=","replicated":true}`) // nothing is answered
		g.answer(t, "region.positions.b \x00\x01", Stored{}, nil)
		desk.send(`{"op":"publish","id":4,"topic":"region.positions.c","data":1,"replicated":true}`)
		g.answer(t, "region.positions.c 1", Stored{}, fmt.Errorf("%w: full", ErrNotStored))
		desk.want(`{"op":"error","id":4,"code":"not-stored","error":"not stored: full"}`)
		raw.sendBytes(binaryPublish(5, "region.positions.d", 3, "", "\x00"))
		g.answer(t, "region.positions.d \x00", Stored{Partition: 0, At: fanout.Position{Seq: 2}}, nil)
		raw.want(`{"op":"published","id":5,"partition":0,"at":"2"}`)
		raw.sendBytes(binaryPublish(6, "region.positions.e", 2, "", "[1]"))
		g.answer(t, "region.positions.e [1]", Stored{}, fmt.Errorf("%w: time is over", ErrOutcome))
		raw.want(`{"op":"error","id":6,"code":"unknown","error":"it is not known whether it is stored: time is over"}`)
		// One that has gone is not answered, and what it had is not counted any more.
		desk.send(`{"op":"publish","id":8,"topic":"region.positions.f","data":1,"replicated":true}`)
		_ = desk.c.CloseNow()
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			if st, _ := s.Stats(); st.Hub.Clients == 2 {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the client does not end")
			}
		}
		g.answer(t, "region.positions.f 1", Stored{}, nil)
		left := 0
		s.Do(func(*fanout.Hub) { left = s.storingAll.messages + s.storingAll.bytes + len(s.storing) })
		if st, _ := s.Stats(); left != 0 || st.Publish.Stored != 4 || st.Publish.NotStored != 2 || st.Publish.Published != 0 {
			t.Errorf("counted are %+v; %d are being stored", st.Publish, left)
		}
		// The message itself is that of the log: nothing was handed to readers here.
		reader.send(`{"op":"position","id":7}`)
		reader.want(`{"op":"position","id":7`)
	})
}

func TestReplicatedRefused(t *testing.T) {
	g := &store{}
	s, addr := start(t, transport.KindAuto, publishers(func(c *Config) {
		c.Replicate, c.Publishing.Replicated, c.Publishing.ReplicatedBytes = g.replicate, 5*ofOne, 1000*ofOne
	}))
	desk := publisher(t, addr, JSON, "desk", "region.positions.>")
	for text, want := range map[string]string{
		`"topic":"region.secret.a","data":1,"replicated":true`:                      `"code":"not-permitted"`,
		`"topic":"region.positions.a","data":1`:                                     `allowed: replicated with topics of region.NAME.KEY, and with them only`,
		`"topic":"user.news.a","data":1,"replicated":true`:                          `"code":"not-permitted"`,
		`"topic":"inbox.a.b","data":1,"replicated":true`:                            `allowed: replicated with topics of region.NAME.KEY, and with them only`,
		`"topic":"region.positions.a","data":1,"reply":"inbox.a","replicated":true`: `since a region answers nothing`,
		`"topic":"region.positions.refused","data":1,"replicated":true`:             `"code":"invalid"`,
		`"topic":"region.positions.*","data":1,"replicated":true`:                   `"code":"invalid"`,
		`"topic":"region.positions.a","data":1,"replicated":"true"`:                 `"code":"invalid"`,
		`"topic":"region.positions.a","data":1,"base64":"","replicated":true`:       `"code":"invalid"`,
	} {
		desk.send(`{"op":"publish","id":1,` + text + `}`)
		desk.want(want)
	}
	desk.sendBytes(binaryPublish(1, "region.positions.a", 1, "", "1"))
	desk.want("allowed: replicated")
	// What another gateway hands on is never stored.
	if err, _ := s.Relay(binaryPublish(1, "user.a", 2, "", "1")); err == nil {
		t.Error("a replicated message of another gateway is taken")
	}
	if err, _ := s.Relay(binaryPublish(1, "region.positions.a", 0, "", "1")); err == nil {
		t.Error("a message of another gateway to a region is taken")
	}
	news := publisher(t, addr, JSON, "news", "user.news.>")
	news.send(`{"op":"publish","id":1,"topic":"user.news.a","data":1,"replicated":true}`)
	news.want("allowed: replicated with topics of region.NAME.KEY, and with them only")
	// Of one client so many and so long ones are stored at the same time, and of others more.
	for i := range 5 {
		desk.send(fmt.Sprintf(`{"op":"publish","id":1,"topic":"region.positions.k%d","data":1,"replicated":true}`, i))
	}
	desk.send(`{"op":"publish","id":9,"topic":"region.positions.k5","data":1,"replicated":true}`)
	desk.want(`{"op":"error","id":9,"code":"limit"`)
	other := publisher(t, addr, JSON, "other", "region.positions.>")
	other.send(`{"op":"publish","topic":"region.positions.long","data":"` + strings.Repeat("x", 2000) + `","replicated":true}`) // the first may be longer
	other.send(`{"op":"publish","id":2,"topic":"region.positions.k","data":1,"replicated":true}`)
	other.want(`{"op":"error","id":2,"code":"limit"`)
	for i := range 5 {
		g.answer(t, fmt.Sprintf("region.positions.k%d 1", i), Stored{}, nil)
		desk.want(`"op":"published"`)
	}
	desk.send(`{"op":"publish","id":9,"topic":"region.positions.k5","data":1,"replicated":true}`)
	g.answer(t, `region.positions.long "`+strings.Repeat("x", 2000)+`"`, Stored{}, nil)
	g.answer(t, "region.positions.k5 1", Stored{}, nil)
	desk.want(`"op":"published"`)
	// All clients together.
	for i := range 17 {
		many := publisher(t, addr, JSON, fmt.Sprint("many", i), "region.positions.>")
		for k := range 5 {
			many.send(fmt.Sprintf(`{"op":"publish","id":%d,"topic":"region.positions.m","data":1,"replicated":true}`, k+1))
		}
		if i == 16 {
			many.want(`"error":"over a limit of the client: messages of all clients that are being stored are 80`)
			break
		}
		for n := 0; n < 5*(i+1); { // they have come
			s.Do(func(*fanout.Hub) { n = s.storingAll.messages })
		}
	}
	_, addr = start(t, transport.KindAuto, publishers(nil))
	desk = publisher(t, addr, JSON, "desk", "region.positions.>")
	desk.send(`{"op":"publish","id":1,"topic":"region.positions.a","data":1,"replicated":true}`)
	desk.want("this gateway puts nothing into regions")
}
