package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/gateway/sink/kafka"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// A writer goes on where the one before was, and each order has its headers.
func TestResume(t *testing.T) {
	k := broker(t)
	x := target(t, config(k, "resume"))
	var l makeLog
	var last client.Position
	for range 3 {
		w := open(t, x)
		if w.Position() != last {
			t.Fatalf("position %+v, want %+v", w.Position(), last)
		}
		for _, n := range []int{1, 1000, 3, 8} {
			b := l.batch(n)
			if err := w.Write(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			last = b.Through
		}
		w.Close()
	}
	all := committed(t, k, "resume.orders", 0)
	checkLog(t, all, l.seq)
	r := all[len(all)-1]
	want := fmt.Sprintf("grid=resume partition=p0 seq=%s epoch=3 lineage=2 hash=%s prev=%s", header(r, "seq"), header(r, "hash"), header(r, "prev"))
	var got []string
	for _, h := range r.Headers {
		got = append(got, h.Key+"="+string(h.Value))
	}
	if strings.Join(got, " ") != want || len(header(r, "hash")) != 16 {
		t.Errorf("headers %q, want %q", got, want)
	}
	if n := len(committed(t, k, "resume.orders.positions", 0)); n != 12 {
		t.Errorf("%d positions, want one for each of the 12 batches", n)
	}
}

// A writer that goes on after another one was opened is refused, and nothing of it is seen: neither of the batch that
// it had begun, nor of the next.
func TestZombie(t *testing.T) {
	k := broker(t)
	x := target(t, config(k, "zombie"))
	var l makeLog
	old := open(t, x)
	if err := old.Write(t.Context(), l.batch(100)); err != nil {
		t.Fatal(err)
	}
	theirs := l
	next := open(t, x) // that is enough: it has not written anything yet
	for range 2 {
		if err := old.Write(t.Context(), theirs.batch(70)); !errors.Is(err, sink.ErrFenced) {
			t.Fatalf("the old writer: %v, want ErrFenced", err)
		}
	}
	if err := next.Write(t.Context(), l.batch(50)); err != nil {
		t.Fatal(err)
	}
	if err := next.Write(t.Context(), l.batch(10)); err != nil {
		t.Fatal(err)
	}
	checkLog(t, committed(t, k, "zombie.orders", 0), 160)
}

// A sink of executions alone goes on where it was, fences the writer before, and has no topic of orders.
func TestAlone(t *testing.T) {
	k := broker(t)
	cfg := config(k, "lone")
	cfg.Topic, cfg.ExecutionsTopic = "", "{grid}.fills"
	x := target(t, cfg)
	var l makeLog
	batch := func(n int) *sink.Batch {
		b := l.batch(n)
		for i := range b.Entries {
			for n := range i % 3 {
				b.Executions = append(b.Executions, client.Executed{Execution: client.Execution{Entry: b.Entries[i].Seq, N: uint32(n + 1), Kind: client.ExecAccepted}})
			}
		}
		return b
	}
	want, last := 0, client.Position{}
	var old sink.Writer
	for range 3 {
		w := open(t, x)
		if w.Position() != last {
			t.Fatalf("position %+v, want %+v", w.Position(), last)
		}
		for _, n := range []int{1, 100, 3} {
			b := batch(n)
			if err := w.Write(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			want, last = want+len(b.Executions), b.Through
		}
		if old != nil {
			theirs := l
			if err := old.Write(t.Context(), theirs.batch(7)); !errors.Is(err, sink.ErrFenced) {
				t.Errorf("the old writer: %v, want ErrFenced", err)
			}
		}
		old = w
	}
	all, prev := committed(t, k, "lone.fills", 0), ""
	for _, r := range all {
		if header(r, kafka.HeaderPrev) != prev {
			t.Fatalf("offset %d has prev %q, want %q", r.Offset, header(r, kafka.HeaderPrev), prev)
		}
		prev = header(r, kafka.HeaderSeq) + "." + header(r, kafka.HeaderN)
	}
	if len(all) != want {
		t.Errorf("%d executions, want %d", len(all), want)
	}
	topics, err := admin(t, k).ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range topics.Names() {
		if strings.HasPrefix(name, "lone.") && name != "lone.fills" && name != "lone.fills.positions" {
			t.Errorf("topic %s is there", name)
		}
	}
}

// What stands against going on is named, with what to do, and is not taken for something to retry.
func TestWrongTopics(t *testing.T) {
	k := broker(t)
	adm := admin(t, k)
	create := func(topic string, partitions int32) {
		if _, err := adm.CreateTopic(t.Context(), partitions, 1, nil, topic); err != nil {
			t.Fatal(err)
		}
	}
	wrote := func(cfg kafka.Config) {
		var l makeLog
		w := open(t, target(t, cfg))
		b := l.batch(20)
		b.Executions = []client.Executed{{Execution: client.Execution{Entry: 2, N: 1, Kind: client.ExecAccepted}}, {Execution: client.Execution{Entry: 3, N: 1, Kind: client.ExecAccepted}}}
		if err := w.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
	executions := func(cfg *kafka.Config) { cfg.ExecutionsTopic = "{grid}.executions" }
	wroteBoth := func(cfg kafka.Config) {
		executions(&cfg)
		wrote(cfg)
	}
	alone := func(cfg *kafka.Config) { cfg.Topic, cfg.ExecutionsTopic = "", cfg.Topic }
	remove := func(topics ...string) {
		if _, err := adm.DeleteTopics(t.Context(), topics...); err != nil {
			t.Fatal(err)
		}
		for there := true; there; { // the broker answers before its metadata knows
			d, err := adm.ListTopics(t.Context(), topics...)
			if err != nil {
				t.Fatal(err)
			}
			there = slices.ContainsFunc(topics, d.Has)
		}
	}
	for name, c := range map[string]struct {
		prepare func(cfg kafka.Config)
		change  func(cfg *kafka.Config)
		want    string
	}{
		"partitions": {prepare: func(kafka.Config) { create("partitions.orders", 3) }, want: "topic partitions.orders has 3 partitions, allowed: 1"},
		"absent":     {change: func(c *kafka.Config) { c.CreateTopics = false }, want: "topic absent.orders does not exist; create it with 1 partitions"},
		"copies":     {change: func(c *kafka.Config) { c.ReplicationFactor = 9 }, want: "topic copies.orders with replication factor 9"},
		"other":      {prepare: wrote, change: func(c *kafka.Config) { c.Sink = "second" }, want: `topic other.orders is that of sink "kafka" of grid "other"`},
		"again": {prepare: func(cfg kafka.Config) {
			wrote(cfg)
			remove("again.orders")
			create("again.orders", 1)
		}, want: "it was deleted and created again; delete the topic again.orders.positions too"},
		"positions": {prepare: func(cfg kafka.Config) {
			wrote(cfg)
			remove("positions.orders.positions")
		}, want: "topic positions.orders.positions has no position"},
		"ordered": {prepare: wrote, change: alone, want: "the sink of topic ordered.orders wrote orders, and is to write executions alone now: there would be a gap; write what it wrote before"},
		"alone": {prepare: func(cfg kafka.Config) {
			alone(&cfg)
			wrote(cfg)
		}, want: "the sink of topic alone.orders wrote executions alone, and is to write orders now: there would be a gap"},
		"foreign": {prepare: func(kafka.Config) {
			create("foreign.orders.positions", 1)
			produce(t, k.Address, "foreign.orders.positions", "what")
		}, want: "topic foreign.orders.positions, partition 0, offset 0 is no position"},
		"fills-partitions": {prepare: func(kafka.Config) { create("fills-partitions.executions", 2) }, change: executions, want: "topic fills-partitions.executions has 2 partitions, allowed: 1"},
		"fills-foreign": {prepare: func(kafka.Config) {
			create("fills-foreign.executions", 1)
			produce(t, k.Address, "fills-foreign.executions", "what")
		}, change: executions, want: "topic fills-foreign.executions, partition 0 has records up to offset 0, and topic fills-foreign.orders.positions has no position of it"},
		"fills-again": {prepare: func(cfg kafka.Config) {
			wroteBoth(cfg)
			remove("fills-again.executions")
			create("fills-again.executions", 1)
		}, change: executions, want: "the executions up to entry 20 were written to id"},
		"fills-more": {prepare: func(cfg kafka.Config) {
			wroteBoth(cfg)
			produce(t, k.Address, "fills-more.executions", "what")
		}, change: executions, want: "the last execution in topic fills-more.executions, partition 0 is entry ?, and by topic fills-more.orders.positions it is entry 3.1"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(k, name)
			if c.prepare != nil {
				c.prepare(cfg)
			}
			if c.change != nil {
				c.change(&cfg)
			}
			_, err := tryOpen(t, target(t, cfg))
			var permanent *sink.PermanentError
			if !errors.As(err, &permanent) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v\nwant a PermanentError with %q", err, c.want)
			}
		})
	}
}

// Executions may be written from a position on that has none; the record before the first one then is none. Those of a
// sink that is there go on behind the last one.
func TestExecutionsBegin(t *testing.T) {
	k := broker(t)
	cfg := config(k, "begin")
	var l makeLog
	for i := range 3 {
		b := l.batch(20)
		if i > 0 {
			cfg.ExecutionsTopic = "{grid}.executions"
			b.Executions = []client.Executed{{Execution: client.Execution{Entry: b.From + 1, N: 1, Kind: client.ExecAccepted}}, {Execution: client.Execution{Entry: b.From + 1, N: 2, Kind: client.ExecFilled}}}
		}
		w := open(t, target(t, cfg))
		if err := w.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		w.Close()
	}
	checkLog(t, committed(t, k, "begin.orders", 0), 60)
	var got []string
	for _, r := range committed(t, k, "begin.executions", 0) {
		got = append(got, header(r, kafka.HeaderSeq)+"."+header(r, kafka.HeaderN)+" behind "+header(r, kafka.HeaderPrev))
	}
	if want := []string{"22.1 behind ", "22.2 behind 22.1", "42.1 behind 22.2", "42.2 behind 42.1"}; !slices.Equal(got, want) {
		t.Errorf("executions %q, want %q", got, want)
	}
}

// Both topics deleted is a new beginning: it is what the messages ask for.
func TestDeletedTopics(t *testing.T) {
	k := broker(t)
	x := target(t, config(k, "deleted"))
	var l makeLog
	for range 2 {
		w := open(t, x)
		if w.Position() != (client.Position{}) {
			t.Fatalf("position %+v in new topics", w.Position())
		}
		l = makeLog{}
		if err := w.Write(t.Context(), l.batch(20)); err != nil {
			t.Fatal(err)
		}
		w.Close()
		checkLog(t, committed(t, k, "deleted.orders", 0), 20)
		if _, err := admin(t, k).DeleteTopics(t.Context(), "deleted.orders", "deleted.orders.positions"); err != nil {
			t.Fatal(err)
		}
	}
}

// With {partition} in the template a topic is for one partition.
func TestTopicOfPartition(t *testing.T) {
	k := broker(t)
	cfg := config(k, "each")
	cfg.Topic, cfg.Partitions = "{grid}.{partition}.orders", 4
	w, err := target(t, cfg).Open(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var l makeLog
	if err := w.Write(t.Context(), l.batch(9)); err != nil {
		t.Fatal(err)
	}
	checkLog(t, committed(t, k, "each.p3.orders", 0), 9)
}

// Credentials and certificates that are right connect, others are named at once.
func TestCredentials(t *testing.T) {
	k := broker(t)
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	user, password, wrong := file("user", k.User+"\n"), file("password", k.Password+"\n"), file("wrong", "x")
	other, err := pki.Load(filepath.Join(dir, "other"), "other")
	if err != nil {
		t.Fatal(err)
	}
	files, err := other.Save(filepath.Join(dir, "other"), "x", pki.Identity{User: "x"})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	try := func(address, mechanism, password, ca string) error {
		n++
		cfg := config(k, fmt.Sprintf("credentials%d", n))
		cfg.Brokers = []string{address}
		if mechanism != "" {
			if cfg.SASL, err = (kafka.Credentials{Mechanism: mechanism, UserFile: user, PasswordFile: password}).SASL(); err != nil {
				t.Fatal(err)
			}
		}
		if cfg.TLS, err = (kafka.TLSFiles{CA: ca}).Config(); err != nil {
			t.Fatal(err)
		}
		w, err := tryOpen(t, target(t, cfg))
		if err == nil {
			var l makeLog
			err = w.Write(t.Context(), l.batch(10))
			w.Close()
		}
		return err
	}
	for _, m := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		if err := try(k.SASLAddress, m, password, ""); err != nil {
			t.Errorf("%s: %v", m, err)
		}
		refused(t, m+" with a wrong password", try(k.SASLAddress, m, wrong, ""), "--sasl-password-file")
	}
	if err := try(k.TLSAddress, "", "", k.CA); err != nil {
		t.Errorf("TLS: %v", err)
	}
	refused(t, "a certificate of another authority", try(k.TLSAddress, "", "", files.CA), "--kafka-ca")
	if err := try(k.Address, "", "", k.CA); err == nil || !strings.Contains(err.Error(), "is TLS misconfigured") { // or a broker that is stopping: no permanent error
		t.Errorf("TLS to a plain listener: %v", err)
	}
}

func refused(t *testing.T, what string, err error, want string) {
	t.Helper()
	var permanent *sink.PermanentError
	if !errors.As(err, &permanent) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: got %v\nwant a PermanentError with %q", what, err, want)
	}
}

func admin(t testing.TB, k *downstream.Kafka) *kadm.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(k.Address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return kadm.NewClient(cl)
}

func produce(t testing.TB, address, topic, value string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.ProduceSync(context.Background(), &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}
