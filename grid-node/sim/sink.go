package sim

import "github.com/ordergrid/ordergrid/grid-node/replica"

// sink is the downstream system: it takes committed entries and rejects a writer of an
// older lineage, or of an older epoch of its lineage, than it has seen.
type sink struct {
	w       *world
	name    string // of its reader
	crashes int
	epoch   uint64 // highest of a writer
	lineage uint64
	writer  uint64   // boot id of the last writer
	hashes  []uint64 // what it holds
	repeats bool     // entries may repeat: a new writer, or a crash
}

// sinkWriter is the write-behind of one process. It runs on its own threads but stops with
// the process.
type sinkWriter struct {
	reader  int // place in the readers of its pod
	sink    *sink
	active  bool
	busy    bool
	turn    int  // how often it became active
	begins  bool // its next batch is the first since it became active
	pos     uint64
	epoch   uint64
	lineage uint64
}

func (s *sink) crash() {
	s.crashes++
	s.repeats = true
	s.w.logf("sink%s CRASHES and restarts", s)
}

// String is a space and the name of the reader, "" for the one without.
func (s *sink) String() string {
	if s.name == "" {
		return ""
	}
	return " " + s.name
}

// followStatus starts and stops the writers with the role.
func (p *process) followStatus(st *replica.Status) {
	if p.writers == nil {
		for i := range p.w.profile.readersOf(p.pod.index) {
			p.writers = append(p.writers, sinkWriter{reader: i, sink: p.w.sinks[i]})
		}
	}
	for i := range p.writers {
		wr := &p.writers[i]
		pos, known := p.r.Reader(i)
		if st.Role != replica.RolePrimary || !known {
			wr.active = false
			continue
		}
		wr.epoch, wr.lineage = st.Config.Epoch, st.Config.Lineage
		if !wr.active {
			wr.active, wr.begins, wr.pos = true, true, pos
			wr.turn++
		}
		p.writeSoon(wr)
	}
}

// writeSoon lets a writer look for committed entries.
func (p *process) writeSoon(wr *sinkWriter) {
	if !wr.active || wr.busy {
		return
	}
	wr.busy = true
	w := p.w
	w.after(w.between(200*microsecond, 4*millisecond), func() {
		p.deliver(func() { p.writeBatch(wr) })
	})
}

// writeBatch is the writer's thread checking whether its process is the primary. The
// thread may be delayed after that, and the role may change.
func (p *process) writeBatch(wr *sinkWriter) {
	w := p.w
	wr.busy = false
	if !p.alive || !wr.active {
		return
	}
	turn := *wr
	if rng := w.profile.starves; rng != nil && w.now < w.profile.chaos && rng.IntN(3) == 0 {
		wr.busy = true
		w.after(rng.Int64N(120*millisecond), func() {
			p.deliver(func() { wr.busy = false; p.sendBatch(wr, &turn) })
		})
		return
	}
	p.sendBatch(wr, &turn)
}

// sendBatch sends the committed entries that are not written, as the writer of an epoch of
// a lineage: later entries belong to a later primary.
func (p *process) sendBatch(wr, turn *sinkWriter) {
	w, s := p.w, wr.sink
	from, to := turn.pos+1, min(p.status.CommitSeq, turn.pos+64)
	if !p.alive {
		return
	}
	if p.lineage() != turn.lineage { // epochs restart, or the log is another
		p.writeSoon(wr)
		return
	}
	for !operatorMutant(mutSinkUnfenced) && to >= from && uint64(p.log.epochs[to-1]) > turn.epoch {
		to--
	}
	if from > to {
		if wr.epoch != turn.epoch {
			p.writeSoon(wr)
		}
		return
	}
	wr.busy = true
	if wr.turn == turn.turn {
		wr.begins = false
	}
	batch := sinkBatch{boot: p.self.Boot, name: p.name, epoch: turn.epoch, lineage: turn.lineage, from: from, begins: turn.begins, hashes: p.log.hashes[from-1 : to : to], epochs: p.log.epochs[from-1 : to : to]}
	crashes := s.crashes
	w.after(w.between(200*microsecond, 6*millisecond), func() { // it arrives even if its writer is dead by then
		lost := s.crashes != crashes
		never := lost && w.rng.IntN(2) == 0
		ok := !never && s.accept(&batch)
		s.repeats = s.repeats || lost // it may have been written unknown to its writer
		w.after(w.between(100*microsecond, 2*millisecond), func() {
			p.deliver(func() { p.written(wr, turn.turn, to, ok, lost) })
		})
	})
}

// written is the sink's answer.
func (p *process) written(wr *sinkWriter, turn int, to uint64, ok, lost bool) {
	wr.busy = false
	if !p.alive || !wr.active {
		return
	}
	switch {
	case turn != wr.turn: // an answer to the primary that it was before
	case lost: // the answer was lost with the sink: continue from the log's position
		wr.pos, _ = p.r.Reader(wr.reader)
	case ok:
		wr.pos = to
		p.step(&replica.Event{Kind: replica.EventCursor, Seq: to, Reader: wr.reader})
	default:
		return // a newer writer exists; the next change of the configuration shows it
	}
	p.writeSoon(wr)
}

type sinkBatch struct {
	boot, epoch, lineage, from uint64
	name                       string
	begins                     bool
	hashes                     []uint64
	epochs                     []uint32
}

// accept takes a batch, unless its writer was replaced.
func (s *sink) accept(b *sinkBatch) bool {
	if b.lineage < s.lineage || b.lineage == s.lineage && b.epoch < s.epoch { // a restore may begin with an earlier epoch
		s.w.logf("sink%s rejects %s of epoch %d, lineage %d, it has seen %d, %d", s, b.name, b.epoch, b.lineage, s.epoch, s.lineage)
		s.w.stats.SinkFenced++
		return false
	}
	if b.boot != s.writer || b.begins {
		s.repeats = true
	}
	if b.lineage > s.lineage { // another history from here on
		s.lineage, s.repeats = b.lineage, true
		s.hashes = s.hashes[:min(len(s.hashes), int(b.from-1))]
	}
	// It never gets entries before its reader's first position.
	if t := s.w.timeline(b.lineage); b.from == t.readers[s.name]+1 && len(s.hashes) < int(b.from-1) {
		s.hashes = append(s.hashes, t.hashes[len(s.hashes):b.from-1]...)
	}
	if !s.w.checkI9(s, b) {
		return false
	}
	s.epoch, s.writer = b.epoch, b.boot
	if int(b.from)+len(b.hashes)-1 > len(s.hashes) {
		s.hashes = append(s.hashes[:b.from-1], b.hashes...)
		s.repeats = false // it is beyond what it had
	}
	return true
}
