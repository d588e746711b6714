package node

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/ordergrid/ordergrid/grid-node/sink/file"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Clients may read the files of this node's sink, so that they can be compared with the
// logs remotely. The files are read on a separate goroutine, one piece at a time: the loop
// queues a request and copies an answer, and never touches a file. A client that does not
// read its answers is not read from (clientSoftOut).

// maxSinkReads bounds the queue; one more is rejected.
const maxSinkReads = 16

// sinkFiles reads the files of this node's sink, on a goroutine.
type sinkFiles struct {
	*process
	clients *clients
	asked   chan sinkRequest
}

// sinkRequest is a ListSinks, or a ReadSink, of a client.
type sinkRequest struct {
	conn uint64
	part wire.PartitionID
	typ  wire.Type
	read wire.ReadSink // of a ListSinks: ReqID
}

// askSink queues a client's request, or rejects it. Files of any partition of the grid are
// shown: one that moved to other pods has left those of its primaries here.
func (c *clients) askSink(l *link, frame []byte) error {
	t := wire.FrameType(frame)
	part := wire.FramePartition(frame)
	if int(part) >= c.cfg.Partitions {
		return c.directory.notHere(l, t, frame)
	}
	req := sinkRequest{conn: l.conn.ID(), part: part, typ: t}
	if err := decodeSinkRequest(t, frame, &req.read); err != nil {
		return c.badFrame(l, wire.GoawayProtocol, err.Error())
	}
	m := wire.Reject{RequestID: req.read.ReqID, ForType: t}
	if c.cfg.readable() == "" {
		m.Code, m.Text = wire.CodeSinkUnreadable, []byte("this node has no file sink (--sink=hold and no --file-sink)")
	} else {
		req.read.Name = append([]byte(nil), req.read.Name...) // the frame is gone when this is read
		select {
		case c.sinkFiles.asked <- req:
			return nil
		default:
			m.Code, m.Text = wire.CodeOverloaded, fmt.Appendf(nil, "%d requests for the sink's files are waiting, allowed: %d", maxSinkReads, maxSinkReads)
		}
	}
	l.conn.SetOut(wire.AppendReject(l.conn.Out(), part, &m))
	return nil
}

func decodeSinkRequest(t wire.Type, frame []byte, m *wire.ReadSink) error {
	if t == wire.TypeReadSink {
		return wire.DecodeReadSink(frame, m)
	}
	var list wire.Request
	err := wire.DecodeRequest(frame, t, &list)
	m.ReqID = list.ReqID
	return err
}

// run answers queued requests until the node ends. The node does not wait for it: a
// hanging file system must not block the exit.
func (f *sinkFiles) run() {
	for {
		select {
		case <-f.ctx.Done():
			return
		case req := <-f.asked:
			answer := f.answer(&req)
			give := func() {
				if l := f.clients.byID[req.conn]; l != nil && l.conn.Open() {
					l.conn.SetOut(append(l.conn.Out(), answer...))
				}
			}
			// One answer at a time: while the loop is busy no more is read.
			for errors.Is(f.onLoop(give), errLoopBusy) && f.ctx.Err() == nil {
			}
		}
	}
}

// answer reads files and returns the answer's frame.
func (f *sinkFiles) answer(req *sinkRequest) []byte {
	dir, name := file.Dir(f.cfg.readable(), f.cfg.Pod), file.Name(f.cfg.Grid, req.part.String())
	var frame []byte
	var err error
	if req.typ == wire.TypeListSinks {
		frame, err = listSink(dir, name, req)
	} else {
		frame, err = readSink(dir, name, req)
	}
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) { // do not reveal the directory
			err = fmt.Errorf("%s %.255s: %w", path.Op, filepath.Base(path.Path), path.Err)
		}
		return wire.AppendReject(nil, req.part, &wire.Reject{RequestID: req.read.ReqID, Code: wire.CodeSinkUnreadable, ForType: req.typ, Text: []byte(err.Error())})
	}
	return frame
}

func listSink(dir, name string, req *sinkRequest) ([]byte, error) {
	files, err := file.List(dir, name)
	if err != nil {
		return nil, err
	}
	m := wire.SinkFiles{ReqID: req.read.ReqID, Total: uint32(len(files))}
	for _, f := range files[max(0, len(files)-wire.MaxSinkFiles):] {
		m.Files = append(m.Files, wire.SinkFile{Size: uint64(f.Size), SetAside: f.SetAside, Name: []byte(f.Name)})
	}
	return wire.AppendSinkFiles(nil, req.part, &m), nil
}

func readSink(dir, name string, req *sinkRequest) ([]byte, error) {
	r := &req.read
	want := int(min(r.MaxBytes, wire.MaxSinkBytes))
	if want == 0 {
		want = wire.MaxSinkBytes
	}
	b := make([]byte, want)
	p, err := file.Read(dir, name, string(r.Name), int64(r.Offset), b)
	if err != nil {
		return nil, err
	}
	return wire.AppendSinkChunk(nil, req.part, &wire.SinkChunk{ReqID: r.ReqID, Offset: r.Offset, Size: uint64(p.Size), File: p.ID, Bytes: b[:p.N]}), nil
}
