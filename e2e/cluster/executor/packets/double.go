package packets

import (
	"fmt"
	"math/rand/v2"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/e2e/cluster/executor/nfqueue"
)

// doubler lets every packet pass and sends some a second time. All packets
// come here, so that the ones doubled are not overtaken.
type doubler struct {
	queue   *nfqueue.Queue
	tally   *tally
	socket  int // raw, in the packets' namespace
	percent float64
}

func newDoubler(queue *nfqueue.Queue, t *tally, n Namespace, percent float64) (*doubler, error) {
	d := &doubler{queue: queue, tally: t, percent: percent}
	err := n.do(func() (err error) {
		d.socket, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_RAW)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("a raw socket for doubled packets: %w", err)
	}
	// The copies must not be queued again.
	if err := unix.SetsockoptInt(d.socket, unix.SOL_SOCKET, unix.SO_MARK, copyMark); err != nil {
		return nil, fmt.Errorf("marking doubled packets: %w", err)
	}
	return d, nil
}

// copyMark marks the copies; the rules leave packets with it alone.
const copyMark = 0x06f6

func (d *doubler) take(p nfqueue.Packet) {
	if d.queue.Accept(p.ID) != nil {
		d.tally.failed.Add(1)
		return
	}
	if d.percent < 100 && rand.Float64()*100 >= d.percent {
		return
	}
	if d.send(p.Content) != nil {
		d.tally.failed.Add(1)
		return
	}
	d.tally.duplicated.Add(1)
}

// send works for both directions: a copy of a received packet is addressed to
// this namespace and comes in through loopback.
func (d *doubler) send(packet []byte) error {
	if headerLength(packet) >= len(packet) {
		return unix.EINVAL
	}
	return unix.Sendto(d.socket, packet, 0, &unix.SockaddrInet4{Addr: [4]byte(packet[16:20])})
}

func (d *doubler) stop() {}

func (d *doubler) close() error { return unix.Close(d.socket) }
