// Package file is the sink of a partition that is a file on the node: a line of text for
// each entry, for audits and as evidence of what is downstream.
package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/sink"
)

// Sink is a sink that appends one line per entry to a file and syncs it once per batch.
// After a crash it continues after the last whole line.
type Sink struct {
	path    string
	header  string
	metrics *metrics.SinkMetrics
	f       *os.File
	durable int64 // bytes known to be on disk; -1 until the file was read
	buf     []byte
}

var _ sink.Sink = (*Sink)(nil)

// New returns the sink of one partition: <dir>/<pod>/<grid>-<partition>.log.
func New(dir, pod, grid, partition string, m *metrics.SinkMetrics) *Sink {
	return &Sink{
		path:    filepath.Join(Dir(dir, pod), Name(grid, partition)),
		header:  fmt.Sprintf("%s grid=%s partition=%s pod=%s columns=seq,epoch,lineage,kind,sessionID,clientSeq,receivedUnixNano,hash,clOrdID,fix\n", headerPrefix, grid, partition, pod),
		metrics: m, durable: -1,
	}
}

// tailWindow is how much of the end of the file Open reads and checks. The longest line
// (64 KiB of payload, every byte escaped) fits several times.
const tailWindow = 1 << 20

// Open implements Sink.
func (s *Sink) Open() (sink.Position, error) {
	_ = s.Close()
	if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
		return sink.Position{}, fmt.Errorf("--sink-dir: %w", err)
	}
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return sink.Position{}, fmt.Errorf("--sink-dir: %w", err)
	}
	s.f = f
	if s.durable >= 0 {
		// After a failed write or sync the kernel may have dropped dirty pages, and
		// reports that only once: trust nothing after the last good sync.
		if err := f.Truncate(s.durable); err != nil {
			return sink.Position{}, err
		}
	}
	pos, end, err := readTail(f)
	if err != nil {
		return sink.Position{}, fmt.Errorf("%s: %w; move the file away to start a new one", s.path, err)
	}
	if end == 0 {
		return sink.Position{}, s.begin()
	}
	if err := f.Truncate(end); err != nil {
		return sink.Position{}, err
	}
	if _, err := f.Seek(end, io.SeekStart); err != nil {
		return sink.Position{}, err
	}
	s.durable = end
	return pos, nil
}

// begin writes the header of an empty file and makes its name durable.
func (s *Sink) begin() error {
	if err := s.f.Truncate(0); err != nil {
		return err
	}
	if _, err := s.f.WriteAt([]byte(s.header), 0); err != nil {
		return err
	}
	if _, err := s.f.Seek(int64(len(s.header)), io.SeekStart); err != nil {
		return err
	}
	if err := s.f.Sync(); err != nil {
		return err
	}
	s.durable = int64(len(s.header))
	return syncDir(filepath.Dir(s.path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	return d.Sync()
}

// Write implements Sink.
func (s *Sink) Write(b *sink.Batch) error {
	s.buf = s.buf[:0]
	for i, entry := range b.Entries {
		s.buf = appendLine(s.buf, entry, b.Lineages[i], b.Sessions[i])
	}
	if _, err := s.f.Write(s.buf); err != nil {
		return err
	}
	start := time.Now()
	if err := s.f.Sync(); err != nil {
		return err
	}
	s.metrics.Sync.Observe(time.Since(start).Seconds())
	s.durable += int64(len(s.buf))
	return nil
}

// SetAside implements Sink: the file gets a name with the time.
func (s *Sink) SetAside() error {
	if err := os.Rename(s.path, s.path+"."+time.Now().UTC().Format(asideFormat)); err != nil {
		return err
	}
	s.durable = -1
	_, err := s.Open()
	return err
}

// Close implements Sink.
func (s *Sink) Close() error {
	if s.f == nil {
		return nil
	}
	err := s.f.Close()
	s.f = nil
	return err
}

// readTail finds the last whole line, checks that the lines before it are dense and never
// go back an epoch, and returns where the next line begins; 0 for a file without a whole
// header.
func readTail(f *os.File) (pos sink.Position, end int64, err error) {
	st, err := f.Stat()
	if err != nil || st.Size() == 0 {
		return pos, 0, err
	}
	from := max(0, st.Size()-tailWindow)
	tail := make([]byte, st.Size()-from)
	if _, err := f.ReadAt(tail, from); err != nil && !errors.Is(err, io.EOF) {
		return pos, 0, err
	}
	tail = tail[:bytes.LastIndexByte(tail, '\n')+1] // a torn last line is rewritten
	end = from + int64(len(tail))
	if from > 0 {
		cut := bytes.IndexByte(tail, '\n') + 1
		from, tail = from+int64(cut), tail[cut:]
	}
	lines := bytes.Split(bytes.TrimSuffix(tail, []byte{'\n'}), []byte{'\n'})
	if from == 0 {
		if len(tail) == 0 {
			return pos, 0, nil
		}
		if !bytes.HasPrefix(lines[0], []byte(headerPrefix)) {
			return pos, 0, fmt.Errorf("the first line is %.60q, allowed: %q", lines[0], headerPrefix+" …")
		}
		lines = lines[1:]
	}
	if pos, err = checkLines(lines); err != nil || pos.Seq == 0 {
		return pos, end, err
	}
	pos.FirstSeq, pos.FirstHash, err = firstEntry(f)
	return pos, end, err
}

func checkLines(lines [][]byte) (pos sink.Position, err error) {
	for _, line := range lines {
		h, err := parseLine(line)
		switch {
		case err != nil:
			return pos, fmt.Errorf("after sequence %d: %w", pos.Seq, err)
		case pos.Seq != 0 && h.seq != pos.Seq+1:
			return pos, fmt.Errorf("sequence %d follows %d, allowed: %d", h.seq, pos.Seq, pos.Seq+1)
		case h.epoch < pos.Epoch || h.lineage < pos.Lineage:
			return pos, fmt.Errorf("sequence %d goes back to epoch %d of lineage %d from epoch %d of lineage %d", h.seq, h.epoch, h.lineage, pos.Epoch, pos.Lineage)
		}
		pos = sink.Position{Seq: h.seq, Hash: h.hash, Epoch: h.epoch, Lineage: h.lineage}
	}
	return pos, nil
}

// firstEntry is the sequence number and the hash of the first entry.
func firstEntry(f *os.File) (seq, hash uint64, err error) {
	head := make([]byte, tailWindow)
	n, err := f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, err
	}
	lines := bytes.SplitN(head[:n], []byte{'\n'}, 3)
	if len(lines) < 3 {
		return 0, 0, errors.New("the first entry is not a whole line")
	}
	h, err := parseLine(lines[1])
	return h.seq, h.hash, err
}
