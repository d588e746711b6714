package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/feed"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/sink"
	"github.com/ordergrid/ordergrid/grid-node/sink/file"
)

// readable returns the directory of the sink whose files clients may read: that of --sink,
// or the first by name. Empty: none.
func (c *Config) readable() string { return c.sinkDir(c.readers()[0]) }

// outlet feeds the log of a partition to one sink.
type outlet struct {
	name   string // of the sink; that of --sink is called file
	reader int    // place in the replica's readers
	queue  *sink.Queue
}

// checkSinks checks the names of sinks.
func (c *Config) checkSinks(bad func(flag string, value any, allowed string)) {
	const names = "1..32 lowercase letters, digits and hyphens"
	dirs := map[string]string{}
	if c.Sink == SinkFile {
		dirs[c.SinkDir] = "--sink-dir"
	}
	if n := len(c.FileSinks) + len(c.ExternalSinks); n >= machine.MaxReaders {
		bad("file-sink", fmt.Sprintf("%d sinks with those of --external-sink", n), fmt.Sprintf("at most %d", machine.MaxReaders-1))
	}
	for i, name := range c.ExternalSinks {
		switch {
		case name == SinkFile || !order.IsReaderName(name):
			bad("external-sink", fmt.Sprintf("%q", name), names+", not file")
		case slices.Contains(c.ExternalSinks[:i], name) || c.FileSinks[name] != "":
			bad("external-sink", fmt.Sprintf("%q", name), "a name that no other sink has")
		case slices.Contains(c.RemovedSinks, name):
			bad("removed-sink", fmt.Sprintf("%q", name), "names that no --external-sink has")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.FileSinks)) {
		dir := c.FileSinks[name]
		switch other := dirs[dir]; {
		case name == SinkFile: // its position in the log is the one that has no name
			bad("file-sink", fmt.Sprintf("%q", name), "another name: the sink called file is --sink=file with --sink-dir")
		case !order.IsReaderName(name):
			bad("file-sink", fmt.Sprintf("%q", name), names+", then = and a directory")
		case dir == "":
			bad("file-sink", fmt.Sprintf("%q", name+"="), "a name, =, and a directory")
		case other != "":
			bad("file-sink", fmt.Sprintf("%q", name+"="+dir), "a directory of its own, this one is that of "+other)
		case slices.Contains(c.RemovedSinks, name):
			bad("removed-sink", fmt.Sprintf("%q", name), "names that no --file-sink has")
		}
		dirs[dir] = "--file-sink " + name
	}
	for _, name := range c.RemovedSinks {
		if !order.IsReaderName(name) {
			bad("removed-sink", fmt.Sprintf("%q", name), names)
		}
	}
}

// readers are the names of the sinks, in the order of a replica's readers.
func (c *Config) readers() []string {
	names := append(slices.Sorted(maps.Keys(c.FileSinks)), slices.Sorted(slices.Values(c.ExternalSinks))...)
	if c.Sink == SinkFile || len(names) == 0 { // with the sink "hold" nothing moves its position
		names = append([]string{""}, names...)
	}
	return names
}

// sinkDir is the directory of a sink, "" for the sink "hold".
func (c *Config) sinkDir(name string) string {
	if name != "" {
		return c.FileSinks[name]
	}
	if c.Sink == SinkFile {
		return c.SinkDir
	}
	return ""
}

// startSinks starts a queue for each sink. With the sink "hold" there is
// none: the queue is the log, and nothing moves its position.
func (p *partition) startSinks(ctx context.Context, inc *incarnation) error {
	var errs []error
	for i, name := range p.cfg.readers() {
		if dir := p.cfg.sinkDir(name); dir != "" {
			errs = append(errs, p.startSink(ctx, inc, i, name, dir))
		}
	}
	return errors.Join(errs...)
}

func (p *partition) startSink(ctx context.Context, inc *incarnation, i int, name, dir string) error {
	reader, err := inc.feed.Reader("sink " + name)
	if err != nil {
		return fmt.Errorf("partition %s: %w", p.id, err)
	}
	o := &outlet{name: cmp.Or(name, SinkFile), reader: i}
	counts := p.registry.Sink(o.name)
	o.queue = sink.New(sink.Options{
		Name: p.id.String(), Log: reader, Metrics: counts, Logger: p.log.With("sink", o.name),
		Sink: file.New(dir, p.cfg.Pod, p.cfg.Grid, p.id.String(), counts),
		Advance: func(seq uint64) {
			p.loop.Post(func() {
				if p.inc == inc {
					p.step(&replica.Event{Kind: replica.EventCursor, Seq: seq, Reader: i})
				}
			})
		},
		Start: func() (sink.Start, error) { return p.sinkStart(inc, reader) },
	})
	inc.outlets = append(inc.outlets, o)
	before, ended := p.sinkEnded[name], make(chan struct{})
	p.sinkEnded[name] = ended
	inc.wg.Go(func() {
		defer close(ended)
		if before != nil {
			<-before // a slow disk may block the previous writer, and the file has one at a time
		}
		o.queue.Run(ctx)
	})
	return nil
}

// sinkStart returns the state after the freed part of the log to the queue, on its
// goroutine, and keeps the rest.
func (p *partition) sinkStart(inc *incarnation, reader *feed.Reader) (s sink.Start, err error) {
	err = p.onLoop(func() {
		if p.inc != inc {
			return // it ends
		}
		seq, hash, lineage, sessions := p.replica.Base()
		reader.Hold(seq + 1)
		s = sink.Start{Seq: seq, Hash: hash, Lineage: lineage, Sessions: map[uint32]sink.SessionID{}}
		for _, b := range sessions {
			s.Sessions[b.Slot] = sink.SessionID{Hi: b.ID[0], Lo: b.ID[1]}
		}
	})
	return s, err
}

// tellSinks sets whether this node writes the partition's sinks. A new sink is written
// once the log has its position: every primary keeps the entries after it. A standby's
// positions are those of the other site's sinks.
func (p *partition) tellSinks() {
	c := p.status.Config
	if c == nil {
		return
	}
	for _, o := range p.inc.outlets {
		seq, known := p.replica.Reader(o.reader)
		o.queue.SetActive(known && p.status.Role == replica.RolePrimary && !c.Standby, c.Epoch, c.Lineage, seq)
	}
}

// sinks are how far each of the sinks of this node is known to be.
func (p *partition) sinks(s *replica.Status, wall int64) (list []metrics.Sink) {
	for _, o := range p.inc.outlets {
		committed, _ := p.replica.Reader(o.reader)
		m := metrics.Sink{Name: o.name, Seq: max(committed, o.queue.Durable()), Writes: s.Role == replica.RolePrimary}
		// Nothing waits for entries after the last one that is not a sink's position.
		if e := p.store.Read(m.Seq + 1); m.Writes && m.Seq < s.DataSeq && e != nil {
			m.OldestNs = max(0, wall-order.Received(e))
		}
		list = append(list, m)
	}
	if len(p.cfg.ExternalSinks) == 0 {
		return list
	}
	for i, name := range p.cfg.readers() {
		if !slices.Contains(p.cfg.ExternalSinks, name) {
			continue
		}
		m := metrics.Sink{Name: name, Writes: s.Role == replica.RolePrimary}
		m.Seq, _ = p.replica.Reader(i)
		if e := p.store.Read(m.Seq + 1); m.Writes && m.Seq < s.DataSeq && e != nil {
			m.OldestNs = max(0, wall-order.Received(e))
		}
		list = append(list, m)
	}
	return list
}

// sinksWaited are the sinks that the memory of this node waits for: its own where it is the primary, and the names of those
// that a log has.
func (ps *partitions) sinksWaited() (sinks []nodestatus.Sink, readers []string) {
	for _, p := range ps.list {
		s := p.replica.Status()
		for i, m := range p.sinks(&s, ps.loop.Clock().Wall()) {
			if !m.Writes {
				continue
			}
			o := nodestatus.Sink{Name: m.Name, Partition: p.id.String(), Seq: m.Seq, LagEntries: s.CommitSeq - min(m.Seq, s.CommitSeq), LagSeconds: float64(m.OldestNs) * 1e-9}
			if i < len(p.inc.outlets) {
				if err := p.inc.outlets[i].queue.Err(); err != nil {
					o.Error = err.Error()
				}
			}
			sinks = append(sinks, o)
		}
		readers = p.replica.AppendReaders(readers)
	}
	slices.Sort(readers)
	return sinks, slices.Compact(readers)
}

// sinkPosition is how far every sink is known to be.
func (p *partition) sinkPosition() uint64 {
	sunk, _ := p.inc.sunk()
	return max(p.replica.Status().CursorSeq, sunk)
}

// sunk is the entry up to which the sinks of this node hold the log.
func (i *incarnation) sunk() (seq uint64, any bool) {
	for k, o := range i.outlets {
		if d := o.queue.Durable(); k == 0 || d < seq {
			seq = d
		}
	}
	return seq, len(i.outlets) > 0
}
