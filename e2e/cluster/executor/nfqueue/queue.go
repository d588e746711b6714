// Package nfqueue has the kernel hand packets of a network namespace to this
// process, which decides about each: the other half of the iptables
// target NFQUEUE. See linux/netfilter/nfnetlink_queue.h.
package nfqueue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Subsystem and messages of nfnetlink_queue.
const (
	subsystem  = unix.NFNL_SUBSYS_QUEUE << 8
	msgPacket  = subsystem
	msgVerdict = subsystem | 1
	msgConfig  = subsystem | 2

	cfgCommand, cfgParams, cfgMaxLen, cfgMask, cfgFlags = 1, 2, 3, 4, 5

	bind = 1

	copyMeta, copyPacket = 1, 2
	flagGSO              = 4

	attrHeader, attrVerdict, attrPayload = 1, 2, 10
)

// maxLen is how many packets may wait: a second of 100,000 a second. What
// comes on top is dropped and counted, see Overflow.
const maxLen = 100_000

// Need is how much of each packet the owner of a queue reads.
type Need int

const (
	// NeedNothing is for verdicts alone. The kernel then queues what it has
	// not yet cut into segments in one piece.
	NeedNothing Need = iota
	// NeedContent is for the packet from its IP header on, as it will be on the
	// wire: cut into segments, with its checksums.
	NeedContent
)

// Queue is one bound queue. Receive is for one goroutine; verdicts may come
// from others.
type Queue struct {
	conn *netlink.Conn
	num  uint16
}

// Packet waits in the kernel for a verdict.
type Packet struct {
	ID   uint32
	Hook uint8 // HookIn or HookOut, as the rule's chain
	// Content is there with NeedContent, and belongs to the receiver.
	Content []byte
}

// The hooks of chains INPUT and OUTPUT.
const (
	HookIn  = 1
	HookOut = 3
)

// Open binds queue num of a network namespace. Packets come once a rule sends
// them. Closing the queue drops those that wait.
func Open(namespace *os.File, num uint16, need Need) (*Queue, error) {
	buffer := 4 << 10
	if need == NeedContent {
		buffer = 128 << 10 // a packet has at most 64 KiB
	}
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, &netlink.Config{NetNS: int(namespace.Fd()), MessageBufferSize: buffer})
	if err != nil {
		return nil, fmt.Errorf("netfilter queue %d: %w", num, err)
	}
	q := &Queue{conn: conn, num: num}
	if err := q.configure(need); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("netfilter queue %d: %w; does another program own it?", num, err)
	}
	return q, nil
}

func (q *Queue) configure(need Need) error {
	// Without this a burst would make reading fail; what did not fit is counted
	// by the kernel.
	if err := q.conn.SetOption(netlink.NoENOBUFS, true); err != nil {
		return err
	}
	if err := q.conn.SetReadBuffer(16 << 20); err != nil {
		return err
	}
	mode, flags := byte(copyMeta), uint32(flagGSO)
	if need == NeedContent {
		mode, flags = copyPacket, 0
	}
	for _, attr := range []netlink.Attribute{
		{Type: cfgCommand, Data: []byte{bind, 0, 0, 0}},
		{Type: cfgParams, Data: append(binary.BigEndian.AppendUint32(nil, 0xffff), mode)},
		{Type: cfgMaxLen, Data: binary.BigEndian.AppendUint32(nil, maxLen)},
	} {
		if err := q.config(attr); err != nil {
			return err
		}
	}
	return q.config(
		netlink.Attribute{Type: cfgFlags, Data: binary.BigEndian.AppendUint32(nil, flags)},
		netlink.Attribute{Type: cfgMask, Data: binary.BigEndian.AppendUint32(nil, flagGSO)},
	)
}

func (q *Queue) config(attrs ...netlink.Attribute) error {
	data, err := q.message(attrs...)
	if err != nil {
		return err
	}
	_, err = q.conn.Execute(netlink.Message{
		Header: netlink.Header{Type: msgConfig, Flags: netlink.Request | netlink.Acknowledge}, Data: data,
	})
	return err
}

// message is the nfnetlink header with the queue's number, and attributes.
func (q *Queue) message(attrs ...netlink.Attribute) ([]byte, error) {
	body, err := netlink.MarshalAttributes(attrs)
	if err != nil {
		return nil, err
	}
	head := binary.BigEndian.AppendUint16([]byte{unix.AF_UNSPEC, 0}, q.num)
	return append(head, body...), nil
}

// ErrClosed is what Receive returns after Close.
var ErrClosed = errors.New("the queue is closed")

// Receive waits for packets and calls take with each.
func (q *Queue) Receive(take func(Packet)) error {
	for message, err := range q.conn.ReceiveIter() {
		switch {
		case errors.Is(err, unix.ENOENT):
			// A verdict for a packet the kernel has given up, as when its
			// interface went away.
			return nil
		case errors.Is(err, os.ErrClosed), errors.Is(err, unix.EBADF):
			return ErrClosed
		case err != nil:
			return fmt.Errorf("netfilter queue %d: %w", q.num, err)
		}
		if message.Header.Type != msgPacket {
			continue
		}
		packet, err := parsePacket(message.Data)
		if err != nil {
			return fmt.Errorf("netfilter queue %d: %w", q.num, err)
		}
		take(packet)
	}
	return nil
}

// parsePacket reads a message of the kernel's.
func parsePacket(data []byte) (Packet, error) {
	var p Packet
	if len(data) < 4 {
		return p, fmt.Errorf("a message of %d bytes has no header", len(data))
	}
	attrs, err := netlink.NewAttributeDecoder(data[4:])
	if err != nil {
		return p, err
	}
	found := false
	for attrs.Next() {
		switch attrs.Type() {
		case attrHeader:
			if header := attrs.Bytes(); len(header) >= 7 {
				p.ID, p.Hook, found = binary.BigEndian.Uint32(header), header[6], true
			}
		case attrPayload:
			p.Content = attrs.Bytes()
		}
	}
	if attrs.Err() != nil {
		return p, attrs.Err()
	}
	if !found {
		return p, errors.New("a packet came without its number")
	}
	return p, nil
}

// Accept releases a packet.
func (q *Queue) Accept(id uint32) error { return q.verdict(id, 1, nil) }

// AcceptAs releases a packet with other content.
func (q *Queue) AcceptAs(id uint32, content []byte) error { return q.verdict(id, 1, content) }

// Drop drops a packet; its sender is not notified.
func (q *Queue) Drop(id uint32) error { return q.verdict(id, 0, nil) }

func (q *Queue) verdict(id, verdict uint32, content []byte) error {
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, verdict), id)
	attrs := []netlink.Attribute{{Type: attrVerdict, Data: header}}
	if content != nil {
		attrs = append(attrs, netlink.Attribute{Type: attrPayload, Data: content})
	}
	data, err := q.message(attrs...)
	if err != nil {
		return err
	}
	_, err = q.conn.Send(netlink.Message{Header: netlink.Header{Type: msgVerdict, Flags: netlink.Request}, Data: data})
	return err
}

// Close closes the queue. Packets that wait are dropped; packets that come
// later pass if their rule has --queue-bypass.
func (q *Queue) Close() error { return q.conn.Close() }
