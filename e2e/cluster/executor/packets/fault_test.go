package packets

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
)

func ms(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Millisecond}
}

// TestDelayHitsAConnectionThatExists has a round trip take longer by at least
// the latency per direction, for the peer named and only for it.
func TestDelayHitsAConnectionThatExists(t *testing.T) {
	for direction, least := range map[string]time.Duration{
		"": 30 * time.Millisecond, executor.DirectionTo: 30 * time.Millisecond,
		executor.DirectionFrom: 30 * time.Millisecond, executor.DirectionBoth: 60 * time.Millisecond,
	} {
		t.Run("direction "+direction, func(t *testing.T) {
			p := newPair(t)
			conn, other := p.echo(t, peerAddr+":0"), p.echo(t, otherAddr+":0")
			roundTrip(t, conn)
			f := p.start(t, Spec{Type: executor.NetworkDelay, Peers: peers(t, peerAddr),
				Parameters: executor.Parameters{Latency: ms(30), Direction: direction, Interface: "data0"}})
			if took := roundTrip(t, conn); took < least {
				t.Errorf("a round trip takes %s, less than %s", took, least)
			}
			held := counter(t, f, Held)
			if held < int64(least/(30*time.Millisecond)) {
				t.Errorf("%d packets were held", held)
			}
			// The acknowledgement of the last answer may still be in progress.
			for range 50 {
				roundTrip(t, other)
			}
			if more := counter(t, f, "matched") - held; more > 2 {
				t.Errorf("%d packets of a peer not named were held", more)
			}
			if err := f.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			p.noRules(t)
			roundTrip(t, conn)
		})
	}
}

// TestJitterKeepsOrder sends numbered datagrams through a jitter as large as
// the latency.
func TestJitterKeepsOrder(t *testing.T) {
	p := newPair(t)
	receiver, sender := udp(t, p.peer, peerAddr+":0"), udp(t, p.pod, podAddr+":0")
	f := p.start(t, Spec{Type: executor.NetworkDelay, Parameters: executor.Parameters{Latency: ms(5), Jitter: ms(5)}})
	const count = 500
	send(t, sender, receiver, count)
	await(t, f, Held, count)
	numbers := receive(t, receiver, count)
	for i, n := range numbers {
		if n != i {
			t.Fatalf("datagram %d arrived in place %d of %d", n, i, len(numbers))
		}
	}
	if len(numbers) != count {
		t.Errorf("%d of %d arrived", len(numbers), count)
	}
}

// TestStopLetsGoOfWhatIsHeld takes a long delay back while it holds packets.
func TestStopLetsGoOfWhatIsHeld(t *testing.T) {
	p := newPair(t)
	receiver, sender := udp(t, p.peer, peerAddr+":0"), udp(t, p.pod, podAddr+":0")
	f := p.start(t, Spec{Type: executor.NetworkDelay, Parameters: executor.Parameters{Latency: ms(60_000)}})
	send(t, sender, receiver, 20)
	if err := f.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if numbers := receive(t, receiver, 20); len(numbers) != 20 {
		t.Errorf("%d of 20 arrived", len(numbers))
	}
	p.noRules(t)
}

// TestLossIsCountedExactly compares what was sent, dropped and received. The
// sender is not notified.
func TestLossIsCountedExactly(t *testing.T) {
	for _, percent := range []float64{25, 100} {
		t.Run(fmt.Sprint(percent), func(t *testing.T) {
			p := newPair(t)
			receiver, sender := udp(t, p.peer, peerAddr+":0"), udp(t, p.pod, podAddr+":0")
			f := p.start(t, Spec{Type: executor.NetworkLoss, Parameters: executor.Parameters{Loss: percent}})
			const count = 2000
			send(t, sender, receiver, count)
			dropped := counter(t, f, "queued")
			await(t, f, Dropped, dropped)
			if arrived := len(receive(t, receiver, count)); int64(arrived)+dropped != count {
				t.Errorf("%d arrived and %d were dropped of %d", arrived, dropped, count)
			}
			// Six standard deviations of the draw.
			if expected := count * percent / 100; float64(dropped) < expected-120 || float64(dropped) > expected+120 {
				t.Errorf("%d of %d were dropped for %v per cent", dropped, count, percent)
			}
			if matched := counter(t, f, "matched"); matched != count {
				t.Errorf("%d of %d matched", matched, count)
			}
		})
	}
}

// TestLossAndRecoveryOnAConnection has TCP wait out a total loss.
func TestLossAndRecoveryOnAConnection(t *testing.T) {
	p := newPair(t)
	conn := p.echo(t, peerAddr+":0")
	roundTrip(t, conn)
	f := p.start(t, Spec{Type: executor.NetworkLoss, Parameters: executor.Parameters{Loss: 100, Direction: executor.DirectionBoth}})
	if _, err := conn.Write([]byte("12345678")); err != nil {
		t.Errorf("the sender got: %v", err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	var buffer [8]byte
	if n, err := conn.Read(buffer[:]); err == nil {
		t.Errorf("%d bytes came back through a total loss", n)
	}
	if counter(t, f, Dropped) == 0 {
		t.Error("no packet was dropped")
	}
	if err := f.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := conn.Read(buffer[:]); err != nil {
		t.Errorf("after the loss: %v", err)
	}
}

func TestDuplicate(t *testing.T) {
	for _, direction := range []string{executor.DirectionTo, executor.DirectionFrom} {
		t.Run(direction, func(t *testing.T) {
			p := newPair(t)
			receiver, sender := udp(t, p.peer, peerAddr+":0"), udp(t, p.pod, podAddr+":0")
			if direction == executor.DirectionFrom {
				receiver, sender = sender, receiver
			}
			f := p.start(t, Spec{Type: executor.NetworkDuplicate, Parameters: executor.Parameters{Duplicate: 100, Direction: direction}})
			const count = 200
			send(t, sender, receiver, count)
			await(t, f, Duplicated, count)
			numbers := receive(t, receiver, 2*count)
			seen := map[int]int{}
			for _, n := range numbers {
				seen[n]++
			}
			for n := range count {
				if seen[n] != 2 {
					t.Errorf("datagram %d arrived %d times", n, seen[n])
				}
			}
		})
	}
}

// TestCorruptIsFoundByTheReceiver reads the kernel's count of bad checksums.
func TestCorruptIsFoundByTheReceiver(t *testing.T) {
	p := newPair(t)
	receiver, sender := udp(t, p.peer, peerAddr+":0"), udp(t, p.pod, podAddr+":0")
	f := p.start(t, Spec{Type: executor.NetworkCorrupt, Peers: peers(t, peerAddr), Parameters: executor.Parameters{Corrupt: 100}})
	const count = 200
	send(t, sender, receiver, count)
	await(t, f, Changed, count)
	// A bit of the port or length makes the packet another's; the rest is seen, when the receiver reads it. The kernel may
	// deliver a packet some time after it was changed.
	bad := 0
	for until := time.Now().Add(time.Minute); bad < count/2 && time.Now().Before(until); bad = udpChecksumErrors(t, p.peer) {
		if arrived := len(receive(t, receiver, count)); arrived != 0 {
			t.Fatalf("%d of %d arrived", arrived, count)
		}
	}
	if bad < count/2 {
		t.Errorf("the receiver saw %d bad checksums of %d", bad, count)
	}
}

// TestNobodyNeedsToBeThere covers the executor's death and its deadline.
func TestNobodyNeedsToBeThere(t *testing.T) {
	p := newPair(t)
	conn := p.echo(t, peerAddr+":0")
	f := p.start(t, Spec{Type: executor.NetworkLoss, Parameters: executor.Parameters{Loss: 100}})
	if err := f.Release(); err != nil {
		t.Fatal(err)
	}
	roundTrip(t, conn) // the rules are there, and let all pass
	left, err := Left(t.Context(), p.pod)
	if err != nil || len(left) == 0 || !strings.HasPrefix(left[0], "trading-drill-1-0a1b2c3d ") {
		t.Errorf("the rules do not tell whose they are: %v, %v", left, err)
	}
	late := p.start(t, Spec{ID: "late", Queue: 9001, Type: executor.NetworkLoss, Parameters: executor.Parameters{Loss: 100}, Deadline: time.Now().Add(-time.Hour)})
	roundTrip(t, conn)
	if matched := counter(t, late, "matched"); matched != 0 {
		t.Errorf("%d packets matched after the deadline", matched)
	}
	removed, err := RemoveAll(t.Context(), p.pod)
	if err != nil || removed != 2 {
		t.Errorf("%d chains removed: %v", removed, err)
	}
	p.noRules(t)
	if err := Remove(t.Context(), p.pod, "late"); err != nil {
		t.Errorf("removing what is not there: %v", err)
	}
}

// await waits until a counter has reached what it must.
func await(t *testing.T, f *Fault, name string, want int64) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		got := counter(t, f, name)
		if got == want {
			return
		}
		if got > want || time.Now().After(deadline) {
			t.Fatalf("%d packets %s, want %d", got, name, want)
		}
	}
}

func send(t *testing.T, from, to *net.UDPConn, count int) {
	t.Helper()
	target := to.LocalAddr().(*net.UDPAddr).AddrPort()
	for i := range count {
		if _, err := from.WriteToUDPAddrPort(binary.BigEndian.AppendUint64(nil, uint64(i)), target); err != nil {
			t.Fatalf("datagram %d: %v", i, err)
		}
	}
}

// receive reads datagrams until there are count or none comes for a while.
func receive(t *testing.T, conn *net.UDPConn, count int) []int {
	t.Helper()
	var numbers []int
	buffer := make([]byte, 64)
	for len(numbers) < count {
		_ = conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		n, _, err := conn.ReadFromUDPAddrPort(buffer)
		if err != nil {
			break
		}
		if n == 8 {
			numbers = append(numbers, int(binary.BigEndian.Uint64(buffer)))
		}
	}
	return numbers
}

func udpChecksumErrors(t *testing.T, n Namespace) int {
	t.Helper()
	text, err := os.ReadFile("/proc/" + pid(n) + "/net/snmp")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if fields[0] != "Udp:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, name := range names {
			if name == "InCsumErrors" {
				var count int
				_, _ = fmt.Sscan(fields[i], &count)
				return count
			}
		}
	}
	t.Fatal("no InCsumErrors in /proc/net/snmp")
	return 0
}
