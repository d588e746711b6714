package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// duplex is a connection that one goroutine writes and another one reads, on which the node
// may have nothing to send for long.
type duplex struct {
	*conn
	patience time.Duration // after which a silent node is asked whether it is there
	next     string        // what the caller does when it is not, for the error

	writing  sync.Mutex // write, and the pings of read
	heardAt  int64      // of read; nanotime
	pingedAt int64
}

func newDuplex(k *conn, patience time.Duration, next string) *duplex {
	return &duplex{conn: k, patience: patience, next: next, heardAt: nanotime()}
}

// writePatience is for a node that takes nothing in while it answers: read notices one that
// does not answer.
const writePatience = time.Hour

func (d *duplex) write(ctx context.Context, frames []byte) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	return d.send(ctx, frames, nanotime()+int64(writePatience))
}

// read waits for bytes, which it appends to conn.in.
func (d *duplex) read(ctx context.Context) error {
	for {
		n, err := d.st.Read(d.space(), nanotime()+int64(tick))
		d.w += n
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case n > 0:
			d.heardAt, d.pingedAt = nanotime(), 0
			return nil
		case errors.Is(err, errTick):
			if err := d.silent(ctx); err != nil {
				return err
			}
		case err != nil:
			return fmt.Errorf("%s: %w: %w", d.addr, errLost, err)
		}
	}
}

// silent is for a node from which nothing comes.
func (d *duplex) silent(ctx context.Context) error {
	now, patience := nanotime(), int64(d.patience)
	switch {
	case d.pingedAt != 0 && now-d.pingedAt > patience:
		return &silentError{d.addr, time.Duration(now - d.heardAt), d.next}
	case d.pingedAt == 0 && now-d.heardAt > patience:
		d.pingedAt = now
		if !d.writing.TryLock() { // write has it, and has to be answered, too
			return nil
		}
		defer d.writing.Unlock()
		return d.send(ctx, wire.AppendRequest(nil, wire.TypePing, &wire.Request{ReqID: linkReqID}), now+patience)
	}
	return nil
}
