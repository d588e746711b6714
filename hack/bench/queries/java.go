package queries

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/peers"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// Java is a peer of two server JVMs, with a client JVM (class Asking) that is told what to ask by lines.
type Java struct {
	*peers.Peer
	class string // of its Rows
	note  string

	orders  *Orders
	running *system.Running
	client  *proc.Process
	in      io.WriteCloser
}

// clientHeapMiB is the heap of the client: for the orders of a batch, and those that answers have.
const clientHeapMiB = 768

// jvmMiB is what a JVM takes beside its heap.
const jvmMiB = 256

// heapFor is the heap of a server for so many orders, of which it has one copy each: 2 GiB for a million.
func heapFor(orders int) int { return max(512, 2048*orders/1_000_000) }

// newJava returns a peer by its name, with this heap of each server; 0: what the orders need.
func newJava(name string, heapMiB int, dir string) (*Java, error) {
	chosen, err := peers.Choose(name, dir)
	if err != nil {
		return nil, err
	}
	j := &Java{Peer: chosen[0]}
	j.Peer.HeapMiB = heapMiB
	switch name {
	case cases.Hazelcast:
		j.class, j.note = "hazelcast.HazelcastRows", "hazelcast: IMap with one synchronous backup, objects in memory (OBJECT, compact serialization), indexes on account, price and time; loaded by setAll of 1,000; rows are whole objects with the message; groups by an aggregator of its own, patch by an entry processor; drop is clear"
	case cases.Coherence:
		j.class, j.note = "coherence.CoherenceRows", "coherence: distributed cache with one backup, POF, indexes on account, price and time; loaded by putAll of 1,000 from a member without storage; rows are whole objects with the message; PofExtractor, GroupAggregator, PofUpdater; drop is truncate"
		j.Flags = []string{"-Dcoherence.pof.enabled=true", "-Dcoherence.pof.config=orders-pof-config.xml"}
	}
	return j, nil
}

// MemoryMiB implements System.
func (j *Java) MemoryMiB(orders int, _ bool) int64 {
	heap := j.Peer.HeapMiB
	if heap == 0 {
		heap = heapFor(orders)
	}
	return int64(2*heap + clientHeapMiB + 3*jvmMiB)
}

// Prepare implements System.
func (j *Java) Prepare(ctx context.Context) error { return j.Build(ctx) }

// Start implements System.
func (j *Java) Start(ctx context.Context, o *Orders) (err error) {
	j.orders = o
	if j.Peer.HeapMiB == 0 {
		j.Peer.HeapMiB = heapFor(o.N)
	}
	if j.running, err = j.Peer.Start(ctx, system.Loopback{}, system.Topology{Copies: 2}); err != nil {
		return err
	}
	args := j.Client(clientHeapMiB, "Asking", j.class, j.running.Addresses[0])
	cmd := exec.Command(args[0], args[1:]...)
	if j.in, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if j.client, err = proc.Start(j.Name()+" client", cmd); err != nil {
		return err
	}
	_, err = j.client.Line(ctx, "ready")
	return err
}

// tell sends lines, and returns the answer.
func (j *Java) tell(ctx context.Context, write func(w *bufio.Writer)) ([]string, error) {
	w := bufio.NewWriterSize(j.in, 1<<20)
	write(w)
	if err := w.Flush(); err != nil {
		return nil, fmt.Errorf("%s client: %w: %s", j.Name(), err, j.client.Said())
	}
	line, err := j.client.Line(ctx, "took")
	return strings.Fields(line), err
}

// once tells one line, which is answered with its time.
func (j *Java) once(ctx context.Context, write func(w *bufio.Writer)) (time.Duration, error) {
	words, err := j.tell(ctx, write)
	if err == nil && len(words) != 1 {
		err = fmt.Errorf("%s client: %d words, wanted: 1, nanoseconds", j.Name(), len(words))
	}
	if err != nil {
		return 0, err
	}
	ns, err := strconv.ParseInt(words[0], 10, 64)
	return time.Duration(ns), err
}

// Load implements System.
func (j *Java) Load(ctx context.Context, batch []Order) (time.Duration, error) {
	return j.once(ctx, func(w *bufio.Writer) {
		fmt.Fprintf(w, "load %d\n", len(batch))
		for i := range batch {
			x := &batch[i]
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%d\t%s\n", x.ID, x.Account, x.Symbol, x.Side, x.Cents, x.Qty, x.OrdType, x.TIF, x.Ms, x.FIX)
		}
	})
}

// Askers implements System.
func (j *Java) Askers(context.Context) ([]Asker, error) { return []Asker{j}, nil }

// parameters of a question, as class Asking reads them.
func parameters(q *Question, first, n int) (all []string) {
	switch q.Op {
	case Get:
		for i := first; i < first+n; i++ {
			all = append(all, q.key(i))
		}
	case Equal:
		all = []string{hotAccount}
	case Count:
		all = []string{strconv.Itoa(hotQty)}
	case Range:
		for _, v := range []int64{q.cents[0], q.cents[1] - 1, q.ms[0], q.ms[1] - 1} { // to the last one
			all = append(all, strconv.FormatInt(v, 10))
		}
	case Patched, PatchedSells:
		all = []string{patchedTIF}
	}
	return all
}

// Ask implements Asker.
func (j *Java) Ask(ctx context.Context, q *Question, first, n int) ([]Took, error) {
	words, err := j.tell(ctx, func(w *bufio.Writer) {
		fmt.Fprintf(w, "ask %s %d %s\n", q.Op, n, strings.Join(parameters(q, first, n), " "))
	})
	if err == nil && len(words) != 3*n {
		err = fmt.Errorf("%s client: %d words, wanted: %d, three of each answer", j.Name(), len(words), 3*n)
	}
	if err != nil {
		return nil, err
	}
	all := make([]Took, n)
	for i := range all {
		ns, err1 := strconv.ParseInt(words[3*i], 10, 64)
		rows, err2 := strconv.Atoi(words[3*i+1])
		sum, err3 := strconv.ParseUint(words[3*i+2], 16, 64)
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, fmt.Errorf("%s client: %w", j.Name(), err)
		}
		all[i] = Took{time.Duration(ns), Answer{rows, sum}}
	}
	return all, nil
}

// Patch implements System.
func (j *Java) Patch(ctx context.Context) (time.Duration, string, error) {
	return j.change(ctx, "patch "+patchedTIF, j.orders.AfterPatch()...)
}

// Drop implements System.
func (j *Java) Drop(ctx context.Context) (time.Duration, string, error) {
	return j.change(ctx, "drop", AfterDrop())
}

func (j *Java) change(ctx context.Context, line string, after ...Question) (time.Duration, string, error) {
	took, err := j.once(ctx, func(w *bufio.Writer) { _, _ = w.WriteString(line + "\n") }) // Flush has its error
	if err != nil {
		return 0, "", err
	}
	wrong, err := differs(ctx, j, after...)
	return took, wrong, err
}

// PIDs implements System.
func (j *Java) PIDs() []int { return append(slices.Clone(j.running.PIDs), j.client.PID()) }

// Notes implements System.
func (j *Java) Notes() []string {
	return []string{fmt.Sprintf("%s; two server JVMs of %d MiB of heap, a client JVM of %d", j.note, j.Peer.HeapMiB, clientHeapMiB)}
}

// Stop implements System.
func (j *Java) Stop() error {
	j.client.Kill() // nil: it was not started
	var err error
	if j.running != nil {
		err = j.running.Stop()
	}
	j.client, j.running = nil, nil
	return err
}
