package sim

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/frametext"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A trace has one line per event: the true time in milliseconds, and a text. a1 is the
// first process of pod a, a2 the next. Frames are listed where they arrive. Heartbeats are
// omitted.

func (w *world) logf(format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%10.3f  %s\n", float64(w.now)/1e6, w.short(fmt.Sprintf(format, args...)))
	}
}

// traceFrame is a frame between replicas.
func (w *world) traceFrame(from *process, to *pod, frame []byte, note string) {
	if w.trace == nil || frametext.Quiet(frame) {
		return
	}
	name := to.name
	if to.proc != nil {
		name = to.proc.name
	}
	if note != "" {
		note = "   " + note
	}
	w.logf("%s -> %s: %s%s", from.name, name, frametext.Peer(frame, nil), note)
}

// traceRequest is a frame of a client as it arrives.
func (w *world) traceRequest(c *conn, p *process, frame []byte) {
	if w.trace != nil && wire.FrameType(frame) != wire.TypeReadLog {
		w.logf("%s -> %s: %s", c.userName(), p.name, frametext.Request(frame))
	}
}

// traceReply is an answer to a client as it leaves.
func (w *world) traceReply(p *process, c *conn, frame []byte) {
	if w.trace != nil && wire.FrameType(frame) != wire.TypeLogChunk {
		w.logf("%s -> %s: %s", p.name, c.userName(), frametext.Reply(frame))
	}
}

func (c *conn) userName() string {
	switch u := c.user.(type) {
	case *client:
		return fmt.Sprintf("client %d (connection %d)", u.id, c.id)
	case *reader:
		return fmt.Sprintf("client %d (reads)", u.c.id)
	}
	if g, ok := c.user.(*fixGateway); ok {
		return fmt.Sprintf("%s (connection %d)", g.name, c.id)
	}
	if _, ok := c.user.(*follower); ok {
		return "follower"
	}
	return "subscriber"
}

// short writes "a/00000000000a0001" as "a1" and leaves the partition's name out.
func (w *world) short(s string) string {
	s = strings.ReplaceAll(s, partition.String()+": ", "")
	for _, p := range w.pods {
		for i := len(p.all); i > 0 && strings.Contains(s, "00000000"); i-- {
			boot := p.all[i-1].self.Boot
			s = strings.ReplaceAll(s, wire.FormatMemberID(p.name, boot), p.all[i-1].name)
			s = strings.ReplaceAll(s, wire.FormatBootID(boot), p.all[i-1].name)
		}
	}
	return s
}

// name of the process with this boot id.
func (w *world) name(boot uint64) string {
	if p := w.incarnation(boot); p != nil {
		return p.name
	}
	return wire.FormatBootID(boot)
}

func (w *world) configText(c *replica.Config) string {
	if c.Epoch == 0 {
		return "epoch 0"
	}
	return w.short(c.String())
}

func (w *world) statusText(p *process) string {
	s := p.r.Status()
	text := s.Role.String()
	if s.Suspended {
		text += " (suspended)"
	}
	if s.Draining {
		text += " (draining)"
	}
	if s.Config != nil {
		text += ", " + w.configText(s.Config)
	}
	return fmt.Sprintf("%s, last %d committed %d", text, s.LastSeq, s.CommitSeq)
}
