package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// SinkFile is a file of a node's write-behind sink of a partition. Each pod that was
// the partition's primary has one, and may have others that were set aside: they
// belong to another history than the log.
type SinkFile struct {
	Partition wire.PartitionID
	Address   string // of the node that has it
	Name      string
	Size      int64 // bytes, when it was listed
	SetAside  bool
}

// SinkFiles lists the files of the node at address, the data port of a member of
// the partition: those set aside by age, then the one that is written to.
// ErrSinkUnreadable: the node has no file sink.
func (c *Client) SinkFiles(ctx context.Context, partition wire.PartitionID, address string) ([]SinkFile, error) {
	var m wire.SinkFiles
	err := c.askSink(ctx, address, func(dst []byte, reqID uint64) []byte {
		return wire.AppendRequestOn(dst, wire.TypeListSinks, partition, &wire.Request{ReqID: reqID})
	}, func(frame []byte) error { return wire.DecodeSinkFiles(frame, &m) })
	if err != nil {
		return nil, fmt.Errorf("list the sink files of %s at %s: %w", partition, address, err)
	}
	if int(m.Total) > len(m.Files) {
		return nil, fmt.Errorf("list the sink files of %s at %s: there are %d, allowed: %d; remove old ones that were set aside", partition, address, m.Total, len(m.Files))
	}
	out := make([]SinkFile, 0, len(m.Files))
	for _, f := range m.Files {
		out = append(out, SinkFile{Partition: partition, Address: address, Name: string(f.Name), Size: int64(f.Size), SetAside: f.SetAside})
	}
	return out, nil
}

// askSink retries while the node has too many such requests.
func (c *Client) askSink(ctx context.Context, address string, encode func([]byte, uint64) []byte, decode func([]byte) error) error {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		err := c.call(ctx, address, encode, decode)
		if !errors.Is(err, ErrOverloaded) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}
}

// SinkReader reads a file of a node's sink over the network, one piece of at most
// 64 KiB in flight. It ends where the file ends at the time; it is for one
// goroutine.
type SinkReader struct {
	c      *Client
	ctx    context.Context //nolint:containedctx // of one read, as io.Reader has no parameter for it
	file   SinkFile
	offset uint64
	id     uint64 // of the file, 0 before the first piece
	piece  []byte // read and not handed out yet
}

var _ io.Reader = (*SinkReader)(nil)

// ErrSinkChanged means that the file was set aside, or cut after a failed write, while it was
// being read. List the files and begin again.
var ErrSinkChanged = errors.New("the sink file was replaced or cut meanwhile")

// OpenSink reads f from a byte offset on. It sends nothing before the first Read;
// ctx is for all of them.
func (c *Client) OpenSink(ctx context.Context, f SinkFile, offset int64) *SinkReader {
	return &SinkReader{c: c, ctx: ctx, file: f, offset: uint64(max(0, offset))}
}

// Offset of the next byte in the file.
func (r *SinkReader) Offset() int64 { return int64(r.offset) - int64(len(r.piece)) }

// Read implements io.Reader.
func (r *SinkReader) Read(p []byte) (int, error) {
	if len(r.piece) == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.piece)
	r.piece = r.piece[n:]
	return n, nil
}

func (r *SinkReader) next() error {
	f := &r.file
	var m wire.SinkChunk
	err := r.c.askSink(r.ctx, f.Address, func(dst []byte, reqID uint64) []byte {
		return wire.AppendReadSink(dst, f.Partition, &wire.ReadSink{ReqID: reqID, Offset: r.offset, Name: []byte(f.Name)})
	}, func(frame []byte) error { return wire.DecodeSinkChunk(frame, &m) })
	switch {
	case err != nil:
	case m.Offset != r.offset:
		err = &ProtocolError{Address: f.Address, What: fmt.Sprintf("SinkChunk.offset is %d, allowed: %d, that of the ReadSink", m.Offset, r.offset)}
	case r.id != 0 && m.File != r.id || m.Size < r.offset:
		err = ErrSinkChanged
	case len(m.Bytes) == 0 && m.Size > r.offset:
		err = &ProtocolError{Address: f.Address, What: fmt.Sprintf("SinkChunk has no bytes from %d on, and the file has %d", r.offset, m.Size)}
	case len(m.Bytes) == 0:
		return io.EOF
	}
	if err != nil {
		return fmt.Errorf("read sink file %s of %s at %s from byte %d: %w", f.Name, f.Partition, f.Address, r.offset, err)
	}
	r.id, r.piece = m.File, m.Bytes
	r.offset += uint64(len(m.Bytes))
	return nil
}

// maxSinkLine holds the largest order with every byte escaped, and the columns.
const maxSinkLine = 4*wire.MaxPayload + 1024

// ReadSink calls fn for the lines of a sink file whose entry has sequence number
// from or a later one, without their newline, valid during the call; docs/protocol.md
// (ReadSink) names the columns. A last line without its newline is being written and
// left out.
func (c *Client) ReadSink(ctx context.Context, f SinkFile, from uint64, fn func(line []byte) error) error {
	in := bufio.NewReaderSize(c.OpenSink(ctx, f, 0), maxSinkLine)
	for n := 1; ; n++ {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			return fmt.Errorf("sink file %s of %s at %s: line %d has more than %d bytes", f.Name, f.Partition, f.Address, n, maxSinkLine)
		case err != nil:
			return err
		}
		if line[0] == '#' {
			continue
		}
		line = line[:len(line)-1]
		column, _, _ := bytes.Cut(line, []byte{'\t'})
		seq, err := strconv.ParseUint(string(column), 10, 64)
		if err != nil {
			return fmt.Errorf("sink file %s of %s at %s: line %d: column 1 (seq) is %.40q, allowed: a number", f.Name, f.Partition, f.Address, n, column)
		}
		if seq >= from {
			if err := fn(line); err != nil {
				return err
			}
		}
	}
}
