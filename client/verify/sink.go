package verify

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// sinkFiles are the files of one partition: each pod that was its primary has
// one, and each must be dense by itself. They are read in step with the log.
type sinkFiles struct {
	p     *Partition
	files []*sinkFile
	top   uint64 // last seq of the log compared
}

// openSink opens <dir>/<name> and <dir>/*/<name>.
func openSink(dir, name string, p *Partition) *sinkFiles {
	s := &sinkFiles{p: p}
	p.Sink = &Sink{Files: []string{}}
	if _, err := os.ReadDir(dir); err != nil {
		p.Sink.Error = err.Error()
		return s
	}
	paths, _ := filepath.Glob(filepath.Join(globQuote(dir), "*", name)) // the pattern is well-formed
	if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
		paths = append(paths, filepath.Join(dir, name))
	}
	slices.Sort(paths)
	for _, path := range paths {
		f, err := openSinkFile(path)
		if err != nil {
			p.Sink.Error = err.Error()
			continue
		}
		rel, _ := filepath.Rel(dir, path) // both come from dir
		p.Sink.Files = append(p.Sink.Files, rel)
		s.files = append(s.files, f)
	}
	if len(paths) == 0 && p.Sink.Error == "" {
		p.Sink.Error = fmt.Sprintf("%s: no file %s in it or in a directory of it", dir, name)
	}
	return s
}

// globQuote keeps special characters of a directory's name from matching others.
func globQuote(dir string) string {
	var b []byte
	for _, c := range []byte(dir) {
		if bytes.IndexByte([]byte(`*?[\`), c) >= 0 {
			b = append(b, '\\')
		}
		b = append(b, c)
	}
	return string(b)
}

func (s *sinkFiles) close() {
	for _, f := range s.files {
		f.f.Close() //nolint:errcheck // read only
	}
}

// entry compares the lines that the files have for one entry of the log.
func (s *sinkFiles) entry(e *client.LogEntry, hash uint64) {
	s.top = e.Seq
	sink, found := s.p.Sink, 0
	for _, f := range s.files {
		for s.advance(f) && f.line.seq < e.Seq {
			// Only a file that begins again or goes back has such a line.
			s.p.problem("sink %s line %d: sequence %d, allowed: %d or more; an entry is there twice or out of order", f.path, f.number, f.line.seq, e.Seq)
			f.have = false
		}
		if !f.have || f.line.seq != e.Seq {
			continue
		}
		f.have = false
		if found++; f.line.hash != hash || f.line.kind != e.Kind.String() {
			s.p.problem("sink %s line %d: entry %d is a %s with hash %016x, the log has a %s with %016x", f.path, f.number, e.Seq, f.line.kind, f.line.hash, e.Kind, hash)
			continue
		}
		if e.Kind == order.KindOrder && !bytes.Equal(f.line.fix, sinkText(order.Payload(e.Bytes))) {
			s.p.problem("sink %s line %d: entry %d: the FIX message is not the log's", f.path, f.number, e.Seq)
		}
	}
	switch {
	case found == 0:
		return
	case found > 1:
		sink.Repeats++
	}
	if sink.First == 0 {
		sink.First = e.Seq
	}
	if e.Seq > sink.Last+1 && sink.Last != 0 {
		sink.Missing += e.Seq - sink.Last - 1
		s.p.problem("sink: entries %d..%d are in no file, later ones are", sink.Last+1, e.Seq-1)
	}
	sink.Last = e.Seq
	if e.Kind == order.KindOrder {
		sink.Orders++
	}
}

// advance makes sure that f.line is the next line not used yet.
func (s *sinkFiles) advance(f *sinkFile) bool {
	if f.have || f.over {
		return f.have
	}
	last := f.line.seq
	err := f.read()
	switch {
	case err != nil:
		f.over = true
		if !errors.Is(err, io.EOF) {
			s.p.problem("sink %s line %d: %v", f.path, f.number, err)
		}
	case last != 0 && f.line.seq != last+1:
		s.p.problem("sink %s line %d: sequence %d follows %d, allowed: %d", f.path, f.number, f.line.seq, last, last+1)
	}
	return f.have
}

// finish looks at what a file has beyond the log compared, and how far it lags.
func (s *sinkFiles) finish() {
	sink := s.p.Sink
	if sink.First > 1 {
		sink.Missing += sink.First - 1
		s.p.problem("sink: entries 1..%d are in no file, later ones are", sink.First-1)
	}
	if sink.Last < s.top {
		sink.Behind = s.top - sink.Last
	}
}

// sinkFile is one file of the file sink, read line by line.
type sinkFile struct {
	path   string
	f      *os.File
	r      *bufio.Reader
	number int // of the line read last
	line   sinkLine
	have   bool // line is not used yet
	over   bool
}

// sinkLine is what is compared of a line.
type sinkLine struct {
	seq, hash uint64
	kind      string
	fix       []byte
}

// maxLine holds the largest order with every byte escaped, and the columns.
const maxLine = 4*order.MaxPayload + 1024

func openSinkFile(path string) (*sinkFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s := &sinkFile{path: path, f: f, r: bufio.NewReaderSize(f, maxLine)}
	header, err := s.r.ReadSlice('\n')
	s.number = 1
	if err != nil || !bytes.HasPrefix(header, []byte("# ordergrid sink v1")) {
		f.Close() //nolint:errcheck // read only
		return nil, fmt.Errorf("%s: the first line is %.60q, allowed: one that begins with \"# ordergrid sink v1\"", path, bytes.TrimSpace(header))
	}
	return s, nil
}

// read takes the next line. A last line without its newline is being written
// and counts as not there.
func (s *sinkFile) read() error {
	for {
		b, err := s.r.ReadSlice('\n')
		if err != nil {
			if errors.Is(err, bufio.ErrBufferFull) {
				return fmt.Errorf("the line has more than %d bytes", maxLine)
			}
			return err
		}
		s.number++
		b = b[:len(b)-1]
		if bytes.HasPrefix(b, []byte("#")) {
			continue
		}
		if s.line, err = parseSinkLine(b); err != nil {
			return err
		}
		s.have = true
		return nil
	}
}

func parseSinkLine(b []byte) (l sinkLine, err error) {
	f := bytes.Split(b, []byte{'\t'})
	if len(f) != 10 {
		return l, fmt.Errorf("it has %d columns, allowed: 10", len(f))
	}
	if l.seq, err = strconv.ParseUint(string(f[0]), 10, 64); err != nil || l.seq == 0 {
		return l, fmt.Errorf("column 1 (seq) is %.40q, allowed: a number of 1 or more", f[0])
	}
	if l.hash, err = strconv.ParseUint(string(f[7]), 16, 64); err != nil || len(f[7]) != 16 {
		return l, fmt.Errorf("column 8 (hash) is %.40q, allowed: 16 hex digits", f[7])
	}
	l.kind, l.fix = string(f[3]), f[9]
	return l, nil
}

// sinkText is a FIX message as the sink prints it: SOH as '|', other special
// bytes as \xNN.
func sinkText(fix []byte) []byte {
	const hex = "0123456789abcdef"
	out := make([]byte, 0, len(fix))
	for _, c := range fix {
		switch {
		case c == 1:
			out = append(out, '|')
		case c < ' ' || c == 0x7f || c == '|' || c == '\\':
			out = append(out, '\\', 'x', hex[c>>4], hex[c&15])
		default:
			out = append(out, c)
		}
	}
	return out
}

func isLogError(err error) bool {
	var e *client.LogError
	return errors.As(err, &e)
}
