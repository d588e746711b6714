package alerts

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// skipNumbers opens sessions by hand and leaves number 2 of each out.
func skipNumbers(_ context.Context, w *world) error {
	p := w.grid.client.Table()[0]
	maker, err := fixorder.NewMaker(fixorder.FIX42, fixorder.ID{Run: fixorder.NewRun(), Probe: 5})
	if err != nil {
		return err
	}
	w.background(func(ctx context.Context) error {
		for n := int64(1); ctx.Err() == nil; n++ {
			now := clock.Wall(clock.Now())
			if err := skip(ctx, p.Primary.Address, p.ID, uint64(n), maker.Make(n, n, now, now)); err != nil && ctx.Err() == nil {
				return err
			}
			_ = clock.Wait(ctx, time.Second)
		}
		return nil
	})
	return nil
}

func skip(ctx context.Context, address string, p wire.PartitionID, n uint64, fix []byte) error {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second)) // a TCP connection has deadlines
	in := bufio.NewReader(c)
	ask := func(request []byte, want wire.Type) ([]byte, error) {
		if _, err := c.Write(request); err != nil {
			return nil, err
		}
		frame, err := readFrame(in)
		if err == nil && wire.FrameType(frame) != want {
			err = fmt.Errorf("a %s came, want %s", wire.FrameType(frame), want)
		}
		return frame, err
	}
	hello := wire.AppendHello(nil, &wire.Hello{MinVersion: wire.MinVersion, MaxVersion: wire.Version, Role: wire.RoleClient, Grid: []byte("dev"), Member: []byte("alerts-check-gap")})
	if _, err := ask(hello, wire.TypeWelcome); err != nil {
		return err
	}
	frame, err := ask(wire.AppendOpenSession(nil, p, &wire.OpenSession{ReqID: 1, IDHi: uint64(time.Now().UnixNano()), IDLo: n, Attempt: 1}), wire.TypeSessionOpened)
	if err != nil {
		return err
	}
	var opened wire.SessionOpened
	if err := wire.DecodeSessionOpened(frame, &opened); err != nil {
		return err
	}
	// A new session may begin anywhere in its window; after a first number the next is due.
	for _, number := range []struct {
		seq  uint64
		want wire.Type
	}{{1, wire.TypeAck}, {3, wire.TypeReject}} {
		submit := wire.Submit{Slot: opened.Slot, Generation: opened.Generation, Epoch: opened.Epoch, ClientSeq: number.seq, Payload: fix}
		if _, err := ask(wire.AppendSubmit(nil, p, &submit), number.want); err != nil {
			return fmt.Errorf("number %d: %w", number.seq, err)
		}
	}
	return nil
}

// sayNode opens a connection to a node whose other end claims to be a node without proof.
func sayNode(_ context.Context, w *world) error {
	address := w.grid.client.Table()[0].Primary.Address
	w.background(func(ctx context.Context) error {
		for ctx.Err() == nil {
			if err := sayNodeOnce(ctx, address); err != nil && ctx.Err() == nil {
				return err
			}
			_ = clock.Wait(ctx, 100*time.Millisecond)
		}
		return nil
	})
	return nil
}

// sayNodeOnce returns when the node has closed the connection, or ctx ends.
func sayNodeOnce(ctx context.Context, address string) error {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer func() { _ = c.Close() }()
	hello := wire.AppendHello(nil, &wire.Hello{MinVersion: wire.MinVersion, MaxVersion: wire.Version, Role: wire.RoleBulk, Grid: []byte("dev"),
		BootID: 0xff, Member: []byte("dev-s0-0/00000000000000ff"), Address: []byte("127.0.0.1:1")})
	if _, err := c.Write(hello); err != nil {
		return err
	}
	in := bufio.NewReader(c)
	frame, err := readFrame(in)
	if err != nil {
		return err
	}
	if wire.FrameType(frame) != wire.TypeWelcome {
		return fmt.Errorf("a connection that claims to be a node is answered with %s, want Welcome: --insecure-peers lets it in", wire.FrameType(frame))
	}
	for err == nil {
		_, err = readFrame(in)
	}
	return nil
}

// readFrame returns the next whole frame.
func readFrame(in *bufio.Reader) ([]byte, error) {
	var buf []byte
	for {
		frame, _, err := wire.Split(buf)
		if err != nil || frame != nil {
			return frame, err
		}
		b, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		buf = append(buf, b)
	}
}
