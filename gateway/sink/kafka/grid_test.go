package kafka_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/gateway/sink/kafka"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/ports"
)

// killsEnv is how many primaries TestGridKilled kills, 3 when it is not set.
const killsEnv = "ORDERGRID_SINK_KILLS"

// Primaries are killed under load, and grid-sink in the midst of transactions. Each order that was acknowledged is in
// Kafka once, at its place, with the headers of the one before.
func TestGridKilled(t *testing.T) {
	kills := 3
	if s := os.Getenv(killsEnv); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	k := broker(t)
	g := downstream.Grid(t, "--external-sink", "kafka")
	c := downstream.Dial(t, g)
	s := startSink(t, g.Endpoints, k)
	load := downstream.StartLoad(t, c, 8)
	topic := fmt.Sprintf("grid%d.orders", os.Getpid())
	for i := range kills {
		downstream.WaitForCopies(t, c)
		before := load.Count()
		downstream.WaitFor(t, "100 orders", func() bool { return load.Count() > before+100 })
		downstream.KillPrimary(t, c, g, c.Table()[i%len(c.Table())].ID)
		if i%3 == 1 {
			s.kill()
			s = startSink(t, g.Endpoints, k)
		}
	}
	downstream.WaitForCopies(t, c)
	acked := load.Stop()
	last := map[wire.PartitionID]uint64{}
	for id := range acked {
		last[id.Partition] = max(last[id.Partition], id.Seq)
	}
	downstream.WaitFor(t, "the sink to hold all orders", func() bool {
		for _, p := range s.status(t).Partitions {
			id, err := wire.ParsePartitionID(p.Partition)
			if err != nil {
				t.Fatal(err)
			}
			if p.Position.Seq < last[id] {
				return false
			}
		}
		return true
	})
	s.stop()
	found := map[wire.OrderID]string{}
	records := 0
	for p := range c.Table() {
		all := committed(t, k, topic, int32(p))
		checkChain(t, all)
		for _, r := range all {
			found[idOf(t, r)] = string(r.Key)
		}
		records += len(all)
	}
	for id, clOrdID := range acked {
		if found[id] != clOrdID {
			t.Errorf("order %s was acknowledged as %s, and is in Kafka as %q", clOrdID, id, found[id])
		}
	}
	if records != len(found) || len(found) != len(acked) {
		t.Errorf("%d records of %d orders in Kafka, %d acknowledged", records, len(found), len(acked))
	}
	t.Logf("%d primaries killed, %d times grid-sink; %d orders acknowledged, %d records in Kafka", kills, (kills+1)/3, len(acked), records)
}

func idOf(t *testing.T, r *kgo.Record) wire.OrderID {
	t.Helper()
	p, err := wire.ParsePartitionID(header(r, kafka.HeaderPartition))
	if err != nil {
		t.Fatal(err)
	}
	seq, err := strconv.ParseUint(header(r, kafka.HeaderSeq), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return wire.OrderID{Partition: p, Seq: seq}
}

// gridSink is a process of grid-sink.
type gridSink struct {
	cmd  *exec.Cmd
	http string
	said bytes.Buffer
	done chan struct{}
}

func startSink(t *testing.T, endpoints []string, k *downstream.Kafka, args ...string) *gridSink {
	t.Helper()
	exe, err := downstream.Program("grid-sink")
	if err != nil {
		t.Fatal(err)
	}
	s := &gridSink{http: ports.ForTest(t), done: make(chan struct{})}
	s.cmd = exec.Command(exe, append([]string{"kafka", "--endpoint", strings.Join(endpoints, ","), "--grid", "dev", "--sink", "kafka", "--http", s.http,
		"--broker", k.Address, "--topic", fmt.Sprintf("grid%d.orders", os.Getpid()), "--replication-factor", "1"}, args...)...)
	s.cmd.Stdout, s.cmd.Stderr = &s.said, &s.said
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		s.cmd.Wait() //nolint:errcheck // how it ended is not used
		close(s.done)
	}()
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("grid-sink:\n%s", s.said.String())
		}
	})
	return s
}

func (s *gridSink) kill() {
	s.cmd.Process.Kill() //nolint:errcheck // it may have ended
	<-s.done
}

func (s *gridSink) stop() {
	s.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	<-s.done
}

// status is what /status says; empty while it starts.
func (s *gridSink) status(t *testing.T) (out sink.Status) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for ; ; time.Sleep(50 * time.Millisecond) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.http+"/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			err = json.NewDecoder(resp.Body).Decode(&out)
			resp.Body.Close()
		}
		if err == nil {
			return out
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}
