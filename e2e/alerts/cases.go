package alerts

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/drill/traffic"
)

func named(name string, labels ...string) alert {
	a := alert{name: name, labels: map[string]string{}}
	for i := 0; i < len(labels); i += 2 {
		a.labels[labels[i]] = labels[i+1]
	}
	return a
}

// cases are the conditions that can be caused with processes on one machine.
func cases() []oneCase {
	return []oneCase{
		{alerts: []alert{named("NotRedundant"), named("TargetDown")}, how: "SIGSTOP of one of two nodes",
			cause: func(_ context.Context, w *world) error { return w.grid.freeze(1) },
			undo:  func(_ context.Context, w *world) error { return w.grid.thaw(1) }},
		{alerts: []alert{named("ArbiterErrors"), named("NoPrimary", "seen_by", "nodes")}, how: "arbiter away, then SIGSTOP of a primary: no take-over possible",
			cause: func(ctx context.Context, w *world) error {
				return errors.Join(w.grid.arbiter(ctx, http.MethodPost, "/v1/faults", `{"mode":"away"}`), w.grid.freeze(1))
			},
			undo: func(ctx context.Context, w *world) error {
				return errors.Join(w.grid.arbiter(ctx, http.MethodPost, "/v1/faults", `{"mode":"ok"}`), w.grid.thaw(1))
			}},
		{alerts: []alert{named("NodeStalls")}, how: "SIGSTOP of a node for 150 ms, every second",
			cause: func(_ context.Context, w *world) error {
				w.background(func(ctx context.Context) error { return w.grid.pulses(ctx, 0, 150*time.Millisecond, time.Second) })
				return nil
			}},
		{alerts: []alert{named("LatencyObjectiveMissed", "window", "1h")}, how: slowCopy, limit: 3 * time.Minute, cause: slowDown},
		// Its long window is full of slow orders for as long as orders come on a machine that is busy.
		{alerts: []alert{named("LatencyObjectiveMissed", "window", "6h")}, how: slowCopy + "; then no more orders", limit: 3 * time.Minute, cause: slowDown,
			undo: func(_ context.Context, w *world) error { w.grid.cancel(); return nil }},
		{alerts: []alert{named("ReplicationLagging"), named("OrdersRejected", "reason", "insufficient_in_sync")}, how: "minInSync 2, then SIGSTOP of one of two copies",
			cause: func(ctx context.Context, w *world) error {
				for i := range 2 {
					if err := w.grid.arbiter(ctx, http.MethodPut, fmt.Sprintf("/v1/partitions/dev-s0-p%d/spec", i), `{"minInSync":2}`); err != nil {
						return err
					}
				}
				_ = clock.Wait(ctx, time.Second) // nodes watch the records
				return w.grid.freeze(1)
			},
			undo: func(_ context.Context, w *world) error { return w.grid.thaw(1) }},
		{alerts: []alert{named("OrdersRejected", "reason", "bad_fix")}, how: "one message in six is no FIX", cause: sendGarbage},
		{alerts: []alert{named("GridFull", "severity", "critical"), named("GridFull", "severity", "warning")}, how: "orders into 256 MiB until it refuses; then the nodes are killed and begin empty",
			grid:  func(string) (gridOptions, error) { return gridOptions{memoryMiB: 256}, nil },
			cause: fillUp, limit: 2 * time.Minute,
			undo: func(_ context.Context, w *world) error {
				w.grid.cancel() // no orders any more
				return errors.Join(w.grid.signal(0, syscall.SIGKILL), w.grid.signal(1, syscall.SIGKILL))
			}},
		{alerts: []alert{named("GapFound")}, how: "a client of its own making skips a number of its session", cause: skipNumbers},
		{alerts: []alert{named("PeersNotProved")}, how: "nodes with --insecure-peers, and a stranger that says it is one",
			grid:  func(string) (gridOptions, error) { return gridOptions{args: []string{"--", "--insecure-peers"}}, nil },
			cause: sayNode},
		{alerts: []alert{named("NodeCPUStarved", "cause", "neighbours")}, how: "the nodes' threads and six busy loops share one core",
			grid:  func(string) (gridOptions, error) { return gridOptions{rate: 1000}, nil },
			cause: crowd, limit: 2 * time.Minute},
		{alerts: []alert{named("NodeCPUStarved", "cause", "quota")}, how: "the control group of the nodes gets 5 ms of CPU in 50 ms", grid: inGroup,
			cause: func(_ context.Context, w *world) error {
				return w.grid.group.Quota(5*time.Millisecond, 50*time.Millisecond)
			},
			undo: func(_ context.Context, w *world) error { return w.grid.group.Quota(0, 0) }},
		{alerts: []alert{named("CertificateExpiring")}, how: "the nodes' certificate is replaced by one that ends in two days",
			grid:  func(string) (gridOptions, error) { return gridOptions{args: []string{"--tls"}}, nil },
			cause: func(_ context.Context, w *world) error { return w.grid.reissue(48 * time.Hour) },
			undo:  func(_ context.Context, w *world) error { return w.grid.reissue(0) }},
		{alerts: []alert{named("AuthorizationRulesUnread", "severity", "critical"), named("AuthorizationRulesUnread", "severity", "warning")},
			how:  "the file of authorization rules is cut in the middle, then SIGKILL of one of two nodes: it begins without rules",
			grid: askedWho,
			cause: func(ctx context.Context, w *world) error {
				err := writeRules(w.dir, devRules[:len(devRules)/2])
				_ = clock.Wait(ctx, 3*time.Second) // a node looks once a second
				return errors.Join(err, w.grid.signal(1, syscall.SIGKILL))
			},
			undo: func(_ context.Context, w *world) error { return writeRules(w.dir, devRules) }},
		{alerts: []alert{named("FunctionFailing", "result", "out_of_fuel"), named("FunctionFuelHigh", "function", "restricted-list")}, how: "a function has too little fuel for any order",
			grid:  starvedFunction,
			cause: func(context.Context, *world) error { return nil }, // it fails from the first order on
			undo:  func(_ context.Context, w *world) error { w.grid.cancel(); return nil }},
		{alerts: []alert{named("FunctionFailing", "function", "audit-trail"), named("FunctionFuelHigh", "function", "audit-trail")}, how: "a function of kind Post has too little fuel for any order",
			grid:  starvedPost,
			cause: func(context.Context, *world) error { return nil }, // it fails from the first order on
			undo:  func(_ context.Context, w *world) error { w.grid.cancel(); return nil }},
		{alerts: []alert{named("FunctionRefusalsHigh", "function", "fat-finger")}, how: "a function refuses every order of the flow",
			grid:  refusing,
			cause: func(context.Context, *world) error { return nil }, // from the first order on
			undo:  func(_ context.Context, w *world) error { w.grid.cancel(); return nil }},
		{alerts: []alert{named("KillActive")}, how: "a trader is killed, and taken again",
			grid: func(dir string) (gridOptions, error) { return limited(dir, `{"traderTag":50}`) },
			cause: func(ctx context.Context, w *world) error {
				_, err := w.grid.client.Kill(ctx, oneTrader)
				return err
			},
			undo: func(ctx context.Context, w *world) error {
				_, err := w.grid.client.Unkill(ctx, oneTrader)
				return err
			}},
		{alerts: []alert{named("LimitRefusalsHigh", "rule", "maxOrderVolume")}, how: "limits that no order of the flow keeps",
			grid:  func(dir string) (gridOptions, error) { return limited(dir, `{"maxOrderVolume":"1"}`) },
			cause: func(context.Context, *world) error { return nil }, // the grid reads its limits by itself
			undo:  func(_ context.Context, w *world) error { w.grid.cancel(); return nil }},
		{alerts: []alert{named("BookHalted")}, how: "a book is halted without an end, and resumed", limit: 8 * time.Minute,
			grid:  func(dir string) (gridOptions, error) { return matching(dir, 400) },
			cause: func(ctx context.Context, w *world) error { return w.grid.market(ctx, client.BookHalted) },
			undo:  func(ctx context.Context, w *world) error { return w.grid.market(ctx, client.BookOpen) }},
		{alerts: []alert{named("CollarHits")}, how: "an instrument whose band has no price of the flow",
			grid:  func(dir string) (gridOptions, error) { return matching(dir, 10) },
			cause: func(context.Context, *world) error { return nil }, // orders are refused from the first one on
			undo:  func(_ context.Context, w *world) error { w.grid.cancel(); return nil }},
		{alerts: []alert{named("RegionFull", "region", "quotes"), named("RegionNearlyFull", "region", "quotes")}, how: "values are put into a region of 16 KiB until it refuses; then it is cleared", limit: 8 * time.Minute,
			grid: regioned, cause: fillRegion,
			undo: func(ctx context.Context, w *world) error { return w.grid.client.Region("quotes").Clear(ctx) }},
		{alerts: []alert{named("SinkFallingBehind")}, how: "a file stands where the sink's directory should be", limit: 3 * time.Minute,
			grid:  sinkInTheWay,
			cause: func(context.Context, *world) error { return nil }, // it is there from the start; the age has to grow
			undo: func(_ context.Context, w *world) error {
				return errors.Join(os.Remove(filepath.Join(w.dir, "dev-s0-0")), os.Remove(filepath.Join(w.dir, "dev-s0-1")))
			}},
		{alerts: []alert{named("SinkFailing", "sink", "orders")}, how: "a file stands where the directory of grid-sink's archive should be",
			grid: func(string) (gridOptions, error) {
				return gridOptions{args: []string{"--external-sink", "orders"}}, nil
			},
			cause: archiveInTheWay,
			undo:  func(_ context.Context, w *world) error { return os.Remove(filepath.Join(w.dir, "archives")) }},
		{alerts: []alert{named("GatewayLogonsRefused", "reason", "Credentials")}, how: "a counterparty logs on with a wrong password, twice a second", cause: logOnWrongly, without: []string{"grid"}},
		{alerts: []alert{named("GatewayGridUnreachable"), named("GatewayOutcomeUnknown")}, how: "SIGSTOP of both nodes under the orders of a FIX session", cause: orderIntoSilence,
			undo: func(_ context.Context, w *world) error { return errors.Join(w.grid.thaw(0), w.grid.thaw(1)) }},
		{alerts: []alert{named("GatewayPeersLost")}, how: "a gateway's peer is not there, and comes", cause: aloneOfTwo, undo: theOtherOfTwo},
	}
}

// notCaused are the others. promtool's tests show what their rules do.
var notCaused = []omitted{
	{named("GapFound", "side", "server"), "needs a connection that loses frames, which TCP does not"},
	{named("GridLinkFallingBehind"), "needs two grids and a process of grid-link; the tests of gateway/link show the metric it goes by"},
	{named("FunctionsDiffer"), "needs nodes that are started with different modules; those of one grid here have the same arguments"},
	{named("ExecutionDiverged"), "needs a bug, or memory that changes; the simulator spoils the books of a copy"},
	{named("AuctionLong"), "takes half an hour, or a primary that makes no entries; the tests of grid-node/node show the metrics it goes by"},
	{named("QuestionsSlow"), "needs questions that take seconds; the tests of grid-node/metrics show the metric it goes by"},
	{named("ViewIncomplete"), "goes away with another process only; the tests of grid-node/node show the metric it goes by"},
	{named("ViewLagging"), "needs a loop without time for views; the tests of grid-node/node show the metric it goes by"},
	{named("JournalFailing"), "needs a disk that fails or fills up; the tests of grid-node/node show the metric it goes by"},
	{named("LogBroken"), "needs memory that goes bad"},
	{named("ProbeRegressed"), "needs eight runs of a series; the tests of controllers/orderprobe show the metric it goes by"},
	{named("StateDiverged"), "needs a bug, or memory that changes; the simulator spoils a state"},
}

// starvedFunction gives a grid a function that is loaded, and runs out of fuel in each call.
func starvedFunction(dir string) (gridOptions, error) {
	path := filepath.Join(dir, "restricted-list.wasm")
	if err := os.WriteFile(path, examples.RestrictedList, 0o600); err != nil {
		return gridOptions{}, err
	}
	return gridOptions{args: []string{"--", "--function-pre", fmt.Sprintf("restricted-list=%s:sha256=%x,fuel=50,onError=Pass", path, sha256.Sum256(examples.RestrictedList))}}, nil
}

// refusing gives a grid a function that refuses orders of more than one.
func refusing(dir string) (gridOptions, error) {
	path, config := filepath.Join(dir, "fat-finger.wasm"), filepath.Join(dir, "limits.txt")
	if err := errors.Join(os.WriteFile(path, examples.FatFinger, 0o600), os.WriteFile(config, []byte("quantity=1"), 0o600)); err != nil {
		return gridOptions{}, err
	}
	return gridOptions{args: []string{"--", "--function-pre", fmt.Sprintf("fat-finger=%s:sha256=%x,config=%s", path, sha256.Sum256(examples.FatFinger), config)}}, nil
}

// starvedPost gives a grid a function of kind Post that runs out of fuel in each call.
func starvedPost(dir string) (gridOptions, error) {
	path := filepath.Join(dir, "audit-trail.wasm")
	if err := os.WriteFile(path, examples.AuditTrail, 0o600); err != nil {
		return gridOptions{}, err
	}
	return gridOptions{args: []string{"--", "--function-post", fmt.Sprintf("audit-trail=%s:sha256=%x,fuel=500", path, sha256.Sum256(examples.AuditTrail))}}, nil
}

// sinkInTheWay gives a grid a sink that cannot make its directories in dir.
func sinkInTheWay(dir string) (gridOptions, error) {
	for i := range 2 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("dev-s0-%d", i)), nil, 0o600); err != nil {
			return gridOptions{}, err
		}
	}
	return gridOptions{args: []string{"--sink", "file", "--dir", dir}}, nil
}

const slowCopy = "SIGSTOP of a copy for 40 ms, five times a second"

func slowDown(_ context.Context, w *world) error {
	w.background(func(ctx context.Context) error {
		return w.grid.pulses(ctx, 1, 40*time.Millisecond, 160*time.Millisecond)
	})
	return nil
}

// devRules let the clients of grid-node dev do what the check does.
const devRules = `{"rules": [{"subjects": [{"kind": "User", "name": "ordergrid-dev-client"}], "permissions": ["Submit", "Read"]}]}`

// askedWho gives a grid rules for its clients, in a file that writeRules changes.
func askedWho(dir string) (gridOptions, error) {
	return gridOptions{args: []string{"--tls", "--", "--authorization", filepath.Join(dir, rulesFile)}}, writeRules(dir, devRules)
}

const rulesFile = "rules.json"

// writeRules replaces the file as the kubelet does: never half of it.
func writeRules(dir, text string) error {
	file := filepath.Join(dir, rulesFile)
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func sendGarbage(_ context.Context, w *world) error {
	p := w.grid.client.Table()[0].ID
	w.background(func(ctx context.Context) error {
		for ctx.Err() == nil {
			_, err := w.grid.client.SubmitTo(ctx, p, []byte("8=FIX.4.2|this is no order"))
			var reject *client.RejectError
			if ctx.Err() == nil && !errors.As(err, &reject) {
				return fmt.Errorf("garbage was answered with %w, want a refusal", err)
			}
			_ = clock.Wait(ctx, 25*time.Millisecond)
		}
		return nil
	})
	return nil
}

func fillUp(_ context.Context, w *world) error {
	p := w.grid.client.Table()[0].ID
	w.background(func(ctx context.Context) error {
		for ctx.Err() == nil {
			// The first session that is refused ends the opening of the others.
			if err := traffic.Fill(ctx, w.grid.client, p, 1_000_000); ctx.Err() == nil && !errors.Is(err, client.ErrCapacity) && !errors.Is(err, context.Canceled) {
				return fmt.Errorf("filling ended with %w, want a refusal for want of memory", err)
			}
			_ = clock.Wait(ctx, 100*time.Millisecond)
		}
		return nil
	})
	return nil
}

// crowd puts both nodes on core 0 with six processes that never sleep.
func crowd(_ context.Context, w *world) error {
	for _, pid := range w.grid.PIDs {
		if err := pinThreads(pid); err != nil {
			return err
		}
	}
	w.background(func(ctx context.Context) error {
		var wg sync.WaitGroup
		defer wg.Wait()
		for range 6 {
			busy := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
			busy.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			if err := busy.Start(); err != nil {
				return err
			}
			if err := pinThreads(busy.Process.Pid); err != nil {
				return err
			}
			wg.Go(func() { _ = busy.Wait() }) // killed by ctx
		}
		<-ctx.Done()
		return nil
	})
	return nil
}

// pinThreads puts every thread of a process on core 0.
func pinThreads(pid int) error {
	var set unix.CPUSet
	set.Set(0)
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	for _, t := range tasks {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("pin thread %d of process %d: %w", tid, pid, err)
		}
	}
	return nil
}
