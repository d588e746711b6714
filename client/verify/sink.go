package verify

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// sinkFiles are the files of one partition: each pod that was its primary has
// one, and each must be dense by itself. They are read in step with the log.
//
// A pod that becomes the primary continues at the end of its own file, so it writes entries that
// others wrote before: an entry of epoch e may be in the file of the primary of e and in one file
// more for every epoch after e. In more files than that, or twice in one, it was written by a pod
// that was not the primary.
type sinkFiles struct {
	p       *Partition
	files   []*sinkFile
	partly  bool     // there may be files of pods that were not asked
	away    []string // pods that could not be asked, and why; they hold no copy of the partition now
	top     uint64   // last seq of the log compared
	lineage uint64   // of the entries compared now
	repeats []epochRepeats
}

// epochRepeats is what several files have of one epoch.
type epochRepeats struct {
	epoch, entries uint64
	most           int    // files that have one and the same entry
	seq            uint64 // such an entry
	paths          []string
}

func newSink(p *Partition) *sinkFiles {
	p.Sink = &Sink{Files: []string{}}
	return &sinkFiles{p: p}
}

// add adds a file, or notes why it cannot be read.
func (s *sinkFiles) add(name string, f *sinkFile, err error) {
	if err != nil {
		s.p.Sink.Error = err.Error()
		return
	}
	s.p.Sink.Files = append(s.p.Sink.Files, name)
	s.files = append(s.files, f)
}

// openSink opens <dir>/<name> and <dir>/*/<name>.
func openSink(dir, name string, p *Partition) *sinkFiles {
	s := newSink(p)
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
		rel, _ := filepath.Rel(dir, path) // both come from dir
		f, err := openSinkFile(path)
		s.add(rel, f, err)
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
		f.close()
	}
}

// entry compares the lines that the files have for one entry of the log.
func (s *sinkFiles) entry(e *client.LogEntry, hash uint64) {
	behind := s.top == 0 && e.Seq > 1 // the log is compared from here: freed entries are in the files alone
	s.top = e.Seq
	s.enter(e)
	sink, found := s.p.Sink, 0
	for _, f := range s.files {
		for s.advance(f) && f.line.seq < e.Seq {
			if behind {
				f.skipped = max(f.skipped, f.line.seq)
			} else {
				s.goesBack(f)
			}
			f.have = false
		}
		if !f.have || f.line.seq != e.Seq {
			continue
		}
		f.have = false
		if s.superseded(&f.line, hash) {
			sink.Superseded++
			continue
		}
		found++
		s.compare(f, e, hash)
	}
	switch {
	case found == 0:
		return
	case found > 1:
		s.repeated(e, found)
	}
	if sink.First == 0 {
		sink.First = e.Seq
	}
	if e.Seq > sink.Last+1 && sink.Last != 0 {
		s.missing(sink.Last+1, e.Seq-1)
	}
	sink.Last = e.Seq
	if e.Kind.IsOrder() {
		sink.Orders++
	}
}

// missing reports entries that no file has although later ones are there. A file that could not be
// read, or a pod that could not be asked, may have them.
func (s *sinkFiles) missing(from, to uint64) {
	s.p.Sink.Missing += to - from + 1
	switch {
	case s.p.Sink.Error != "":
	case s.partly:
		s.p.Sink.Error = fmt.Sprintf("entries %d..%d are in no file of the pods that hold a partition now, %v; the file of a pod that is away, or was removed, may have them%s", from, to, s.p.Sink.Files, s.askedInVain())
	default:
		s.p.problem("sink: entries %d..%d are in no file, later ones are", from, to)
	}
}

// askedInVain lists the pods that could not be asked.
func (s *sinkFiles) askedInVain() string {
	if len(s.away) == 0 {
		return ""
	}
	return "; not read: " + strings.Join(s.away, ", ")
}

// freed looks for the entries that the log does not hold any more, which the files alone
// have: after a pod was removed with its file none has them. Files that were set aside may
// be of this history, and are not read.
func (s *sinkFiles) freed() {
	if s.p.Freed == 0 || s.top == 0 || len(s.p.Sink.SetAside) > 0 {
		return
	}
	files := slices.Clone(s.files)
	slices.SortFunc(files, func(a, b *sinkFile) int { return cmp.Compare(a.first, b.first) })
	next := uint64(1)
	for _, f := range files {
		if f.skipped == 0 {
			continue
		}
		if f.first > next {
			s.gone(next, f.first-1)
		}
		next = max(next, f.skipped+1)
	}
	if next <= s.p.Freed {
		s.gone(next, s.p.Freed)
	}
}

// gone reports entries that neither the log nor a file has.
func (s *sinkFiles) gone(from, to uint64) {
	s.p.Sink.Missing += to - from + 1
	if s.p.Sink.Error == "" {
		s.p.Sink.Error = fmt.Sprintf("entries %d..%d are freed, and in no file that was read, %v; the file of a pod that is away, or was removed, may have them%s", from, to, s.p.Sink.Files, s.askedInVain())
	}
}

// enter notes the lineage that e begins.
func (s *sinkFiles) enter(e *client.LogEntry) {
	if payload := order.Payload(e.Bytes); e.Kind == order.KindNoop && len(payload) >= 8 {
		s.lineage = binary.LittleEndian.Uint64(payload)
	}
}

// superseded reports whether a line is of a lineage that has ended: the loss of what only lost
// processes held was accepted, and the log has another entry of this number.
func (s *sinkFiles) superseded(l *sinkLine, hash uint64) bool {
	if s.lineage == 0 { // not known yet: the log's start of the lineage is freed
		return l.hash != hash && l.lineage < uint64(s.p.Lineage)
	}
	return l.lineage < s.lineage
}

// goesBack: only a file that was restarted has a line below what was compared.
func (s *sinkFiles) goesBack(f *sinkFile) {
	if f.line.seq >= f.first {
		s.p.Sink.Duplicates++
		s.p.problem("sink %s line %d: entry %d of epoch %d is in this file twice", f.path, f.number, f.line.seq, f.line.epoch)
		return
	}
	s.p.Sink.OutOfOrder++
	s.p.problem("sink %s line %d: entry %d comes after later ones, the file begins with %d", f.path, f.number, f.line.seq, f.first)
}

// compare compares a line with its entry of the log.
func (s *sinkFiles) compare(f *sinkFile, e *client.LogEntry, hash uint64) {
	l := &f.line
	if s.lineage == 0 && l.hash == hash { // that of the entries before is freed with them
		s.lineage = l.lineage
	}
	switch {
	case l.hash != hash || l.kind != e.Kind.String():
		s.p.problem("sink %s line %d: entry %d is a %s with hash %016x, the log has a %s with %016x", f.path, f.number, e.Seq, l.kind, l.hash, e.Kind, hash)
	case l.epoch != uint64(e.Epoch) || s.lineage != 0 && l.lineage != s.lineage:
		s.p.problem("sink %s line %d: entry %d is of lineage %d epoch %d, in the log it is of lineage %d epoch %d", f.path, f.number, e.Seq, l.lineage, l.epoch, s.lineage, e.Epoch)
	case e.Kind.IsOrder() && !bytes.Equal(l.fix, sinkText(order.Message(e.Bytes))):
		s.p.problem("sink %s line %d: entry %d: the FIX message is not the log's", f.path, f.number, e.Seq)
	}
}

// repeated counts an entry that n files have; finish judges.
func (s *sinkFiles) repeated(e *client.LogEntry, n int) {
	if k := len(s.repeats); k == 0 || s.repeats[k-1].epoch != uint64(e.Epoch) {
		s.repeats = append(s.repeats, epochRepeats{epoch: uint64(e.Epoch)})
	}
	r := &s.repeats[len(s.repeats)-1]
	r.entries++
	if n > r.most {
		r.most, r.seq, r.paths = n, e.Seq, nil
		for _, f := range s.files {
			if f.line.seq == e.Seq {
				r.paths = append(r.paths, filepath.Base(filepath.Dir(f.path)))
			}
		}
	}
}

// judge distinguishes repeats around failovers from entries that two pods wrote at the same time.
// now is the partition's epoch after the files were read: epochs rise by one.
func (s *sinkFiles) judge(now uint64) {
	for i := range s.repeats {
		r := &s.repeats[i]
		later := int(max(now, r.epoch) - r.epoch)
		if r.most-1 <= later {
			s.p.Sink.Repeats += r.entries
			continue
		}
		s.p.Sink.Duplicates += r.entries
		s.p.problem("sink: entry %d of epoch %d is in %d files %v, allowed: %d, one and one more for each of the %d epochs after it; %d entries of that epoch are in several files",
			r.seq, r.epoch, r.most, r.paths, later+1, later, r.entries)
	}
}

// advance makes sure that f.line is the next line not used yet.
func (s *sinkFiles) advance(f *sinkFile) bool {
	if f.have || f.over {
		return f.have
	}
	last := f.line
	err := f.read()
	now := &f.line
	switch {
	case err != nil:
		f.over = true
		switch {
		case errors.Is(err, io.EOF):
		case f.f == nil && !isLineError(err): // reading it failed, not the file
			s.p.Sink.Error = err.Error()
		default:
			s.p.problem("sink %s line %d: %v", f.path, f.number, err)
		}
	case last.seq == 0:
		f.first = now.seq
	case now.seq > last.seq+1:
		s.p.problem("sink %s line %d: sequence %d follows %d, allowed: %d", f.path, f.number, now.seq, last.seq, last.seq+1)
	case now.seq == last.seq+1 && (now.epoch < last.epoch || now.lineage < last.lineage):
		s.p.Sink.OutOfOrder++
		s.p.problem("sink %s line %d: entry %d goes back to lineage %d epoch %d, the one before it is of lineage %d epoch %d",
			f.path, f.number, now.seq, now.lineage, now.epoch, last.lineage, last.epoch)
	}
	return f.have
}

// finish checks what a file has beyond the log compared, and how far it lags.
func (s *sinkFiles) finish(now uint64) {
	s.judge(now)
	s.freed()
	sink := s.p.Sink
	if begin := max(s.p.First, 1); sink.First > begin { // freed entries are in the files alone: nothing to compare them with
		s.missing(begin, sink.First-1)
	}
	if sink.Last < s.top {
		sink.Behind = s.top - max(sink.Last, s.p.First-1)
	}
}
