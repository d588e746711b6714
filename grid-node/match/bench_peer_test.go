//go:build linux

package match

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/artifact"
)

// peerEnv has BenchmarkMatch run the book of exchange-core too, which Maven fetches.
const peerEnv = "ORDERGRID_EXCHANGE_CORE"

// peerWarmUp is how often the peer runs the flow first: by then the JVM has compiled it.
const peerWarmUp = 10

// peer is a process with exchange-core's books.
type peer struct {
	requests *os.File
	answers  *bufio.Reader
}

// sums are what two engines have to agree in: trades, their quantities, and quantities times prices.
type sums struct{ trades, qty, value int64 }

// startPeer starts a warm one.
func startPeer(b *testing.B, flow []Op) *peer {
	b.Helper()
	const dir = "grid-node/match/testdata/exchangecore"
	classpath, err := artifact.Classpath(b.Context(), dir+"/pom.xml", "17 MB")
	if err != nil {
		b.Fatal(err)
	}
	in, requests, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), "java", "-Xms2g", "-Xmx2g", "-XX:+UseSerialGC", "-cp", classpath, "testdata/exchangecore/Book.java", writeFlow(b, flow), fmt.Sprint(mixedBooks))
	cmd.Stdin, cmd.Stderr = in, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	p := &peer{requests: requests, answers: bufio.NewReader(out)}
	b.Cleanup(func() {
		_ = requests.Close() // the end of its input ends it
		_ = in.Close()
		_ = cmd.Wait()
	})
	want := floorSums(flow)
	for range peerWarmUp {
		if _, got := p.run(b); got != want {
			b.Fatalf("exchange-core trades %+v, the floor %+v", got, want)
		}
	}
	return p
}

// run has the peer run the flow once.
func (p *peer) run(b *testing.B) (took time.Duration, got sums) {
	b.Helper()
	if _, err := p.requests.WriteString("\n"); err != nil {
		b.Fatal(err)
	}
	if _, err := fmt.Fscanln(p.answers, &took, &got.trades, &got.qty, &got.value); err != nil {
		b.Fatalf("exchange-core: %v", err)
	}
	return took, got
}

func floorSums(flow []Op) (s sums) {
	f := newFloor(mixedBooks, mixedPrices, len(flow), false)
	defer unmap(f.memory)
	for i := range flow {
		f.fills = f.fills[:0]
		f.apply(&flow[i])
		for _, fill := range f.fills {
			s.trades++
			s.qty += int64(fill.qty)
			s.value += int64(fill.qty) * int64(fill.price)
		}
	}
	return s
}

// writeFlow writes the operations as Book.java reads them: 32 bytes each, little-endian.
func writeFlow(b *testing.B, flow []Op) string {
	b.Helper()
	entered := make([]*Op, len(flow)+1) // by ID
	var out []byte
	for i := range flow {
		op, cancel := &flow[i], byte(0)
		if op.Kind == Cancel {
			op, cancel = entered[op.Orig], 1
		}
		entered[op.ID] = op
		var sell, ioc byte
		if op.Side == Sell {
			sell = 1
		}
		if op.TIF == IOC {
			ioc = 1
		}
		out = append(out, cancel, sell, ioc, 0)
		out = binary.LittleEndian.AppendUint32(out, uint32(op.Book))
		out = binary.LittleEndian.AppendUint64(out, op.ID)
		out = binary.LittleEndian.AppendUint32(out, op.Owner)
		out = binary.LittleEndian.AppendUint32(out, uint32(op.Price))
		out = binary.LittleEndian.AppendUint64(out, uint64(op.Qty))
	}
	path := filepath.Join(b.TempDir(), "flow")
	if err := os.WriteFile(path, out, 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}
