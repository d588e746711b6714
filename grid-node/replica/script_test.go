package replica_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestScripts runs testdata/*.txt; testdata/README.md lists the commands. `go test -run
// TestScripts -rewrite` rewrites the files with the present output.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.HasSuffix(path, ".md") || strings.Contains(path, "fuzz") {
			return // not a script
		}
		s := &script{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.t = t
			return s.run(d)
		})
	})
}

type script struct {
	t        *testing.T
	w        *world
	source   *source               // of a standby
	sessions map[uint64]sessionKey // by client
	fixes    map[uint64]fixKey     // by client
	owner    uint64                // of the sessions opened now
	attempts map[int]int           // by session id
	reqID    uint64

	archived [][]byte // entries, padded

	acked, refused int
	lastReject     string
}

// sessionKey is a client's session from the last SessionOpened.
type sessionKey struct{ slot, generation uint32 }

func (s *script) run(d *datadriven.TestData) string {
	if d.Cmd == "cluster" {
		s.cluster(d)
	} else if s.w == nil {
		d.Fatalf(s.t, "the first command has to be cluster")
	}
	if d.Cmd != "cluster" && !s.traffic(d) && !s.link(d) && !s.fix(d) && !s.fault(d) && !s.look(d) {
		d.Fatalf(s.t, "unknown command %q; testdata/README.md lists them", d.Cmd)
	}
	s.checkStandby()
	out := s.w.trace.String()
	s.w.trace.Reset()
	if out == "" {
		return "ok"
	}
	return out
}

// cluster starts a new world; with quiet only the outcome is printed.
func (s *script) cluster(d *datadriven.TestData) {
	opt := worldOptions{replicas: 2, minInSync: 1, limits: replica.Limits{Window: 8}}
	arg(d, "replicas", &opt.replicas)
	arg(d, "nodes", &opt.nodes)
	podsArg(d, &opt.pods)
	arg(d, "minInSync", &opt.minInSync)
	arg(d, "fixsessions", &opt.limits.FixSessions)
	arg(d, "window", &opt.limits.Window)
	arg(d, "sessions", &opt.limits.Sessions)
	arg(d, "clientSessions", &opt.limits.ClientSessions)
	arg(d, "inFlight", &opt.limits.InFlight)
	arg(d, "reads", &opt.limits.PendingReads)
	arg(d, "joinBound", &opt.limits.JoinBound)
	var memory int
	arg(d, "memory", &memory)
	opt.memory = int64(memory)
	opt.leases = d.HasArg("leases")
	opt.proved = !d.HasArg("asks")
	opt.standby = d.HasArg("standby")
	opt.functions, opt.computes, opt.matches = d.HasArg("functions"), d.HasArg("computes"), d.HasArg("matches")
	arg(d, "posts", &opt.posts)
	s.addSource(d)
	outside := ""
	if arg(d, "outside", &outside); outside != "" {
		opt.outside = []string{outside}
	}
	if d.HasArg("frees") || d.HasArg("frees-hastily") { // at every opportunity
		opt.retention = replica.Retention{FreeDownstream: true, High: 8, Critical: 1 << 40}
	}
	if d.HasArg("frees-hastily") {
		opt.retention.Critical = 8
	}
	arg(d, "before50", &opt.before50)
	s.w = newWorld(s.t, opt)
	s.sessions, s.attempts = map[uint64]sessionKey{}, map[int]int{}
	s.fixes = map[uint64]fixKey{}
	s.w.older = ""
	arg(d, "older", &s.w.older)
	s.w.faults.cut = map[[2]string]bool{}
	s.w.quiet = !d.HasArg("trace")
	if !d.HasArg("unclaimed") {
		s.w.deliver()
		s.w.tick(200 * ms)
	}
	s.w.quiet = false
}

// arg reads key=value if present.
func arg[T int | uint64 | string](d *datadriven.TestData, key string, v *T) {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			a.Scan(nil, 0, v)
		}
	}
}

// podsArg reads pods=(a,b) if present; pods=none names none.
func podsArg(d *datadriven.TestData, pods *[]string) {
	for _, a := range d.CmdArgs {
		if a.Key == "pods" {
			if *pods = append([]string(nil), a.Vals...); a.Vals[0] == "none" {
				*pods = nil
			}
		}
	}
}

// traffic runs the commands of clients.
func (s *script) traffic(d *datadriven.TestData) bool {
	client, on := uint64(1), "a"
	switch d.Cmd {
	case "open", "submit", "invoke", "get", "readlog", "follow", "advance":
		arg(d, "client", &client)
		arg(d, "on", &on)
	}
	n := s.w.node(on)
	switch d.Cmd {
	case "open":
		var id, epoch int
		arg(d, "id", &id)
		arg(d, "epoch", &epoch)
		if id == 0 {
			id = int(client)
		}
		attempt := s.attempts[id] + 1
		arg(d, "attempt", &attempt)
		s.attempts[id] = max(s.attempts[id], attempt)
		s.owner = 0
		arg(d, "of", &s.owner)
		s.reqID++
		s.send(n, client, wire.AppendOpenSession(nil, partition, &wire.OpenSession{
			ReqID: s.reqID, IDHi: uint64(id), IDLo: 7, Epoch: uint64(epoch), Attempt: uint64(attempt),
		}))
	case "submit":
		s.w.quiet = d.HasArg("quiet")
		s.submit(d, n, client)
	case "invoke":
		s.invoke(d, n, client)
	case "get":
		s.get(d, n, client)
	case "readlog":
		var from, maxBytes int
		arg(d, "from", &from)
		arg(d, "max", &maxBytes)
		s.reqID++
		s.send(n, client, wire.AppendReadLog(nil, partition, &wire.ReadLog{ReqID: s.reqID, FromSeq: uint64(from), MaxBytes: uint32(maxBytes)}))
	case "follow":
		s.follow(d, n)
	case "advance":
		s.advance(d, n, client)
	default:
		return false
	}
	if !d.HasArg("hold") {
		s.w.deliver()
	}
	if s.w.quiet {
		s.w.quiet = false
		s.w.logf("%d acknowledged, %d refused, the last: %s", s.acked, s.refused, s.lastReject)
	}
	return true
}

// send gives a node a client's frame; replies are remembered and traced.
func (s *script) send(n *node, client uint64, frame []byte) {
	s.w.observer = func(conn uint64, f []byte) {
		switch wire.FrameType(f) {
		case wire.TypeAck:
			s.acked++
		case wire.TypeReject:
			s.refused++
			s.lastReject = replyText(f)
		}
		s.fixAnswer(conn, f)
		if wire.FrameType(f) == wire.TypeSessionOpened {
			var m wire.SessionOpened
			_ = wire.DecodeSessionOpened(f, &m)
			s.sessions[conn] = sessionKey{m.Slot, m.Generation}
		}
		s.w.logf("  client %d gets %s", conn, replyText(f))
	}
	n.step(replica.Event{Kind: replica.EventClientFrame, Conn: client, Client: s.owner, Frame: frame})
}

func (s *script) submit(d *datadriven.TestData, n *node, client uint64) {
	var from, to, epoch, size int
	var id string
	arg(d, "seq", &from)
	to = from
	arg(d, "to", &to)
	arg(d, "epoch", &epoch)
	arg(d, "clordid", &id)
	arg(d, "size", &size)
	for seq := from; seq <= to; seq++ {
		name := id
		if name == "" {
			name = fmt.Sprintf("c%d-%d", client, seq)
		}
		fix := fixOrder(name, size)
		if d.HasArg("fix50") {
			fix = asFix50(fix)
		}
		if d.HasArg("bad") {
			fix[len(fix)-2] ^= 1
		}
		k := s.sessions[client]
		if d.HasArg("nosession") {
			k = sessionKey{99, 1}
		}
		s.send(n, client, wire.AppendSubmit(nil, partition, &wire.Submit{
			Epoch: uint64(epoch), Slot: k.slot, Generation: k.generation, ClientSeq: uint64(seq), Payload: fix,
		}))
	}
}

func (s *script) get(d *datadriven.TestData, n *node, client uint64) {
	var seq int
	mode, id := "confirmed", ""
	arg(d, "seq", &seq)
	arg(d, "mode", &mode)
	arg(d, "clordid", &id)
	s.reqID++
	m := wire.Get{ReqID: s.reqID, By: wire.ByID, Seq: uint64(seq), Mode: map[string]uint8{"confirmed": 1, "leased": 2, "backup": 3}[mode]}
	if id != "" {
		m.By, m.Key = wire.ByClOrdID, []byte(id)
	}
	if d.HasArg("fix") {
		m.By, m.Key = wire.ByFix, fixKeyOf(d, id)
	}
	s.send(n, client, wire.AppendGet(nil, partition, &m))
}

// fault runs the commands for faults and time.
func (s *script) fault(d *datadriven.TestData) bool {
	w := s.w
	var pods []string
	for _, a := range d.CmdArgs {
		if len(a.Key) == 1 && len(a.Vals) == 0 {
			pods = append(pods, a.Key)
		}
	}
	switch d.Cmd {
	case "deliver":
		w.deliver()
	case "tick":
		var t int
		arg(d, "ms", &t)
		w.tick(int64(t) * ms)
	case "crash":
		w.crash(w.node(pods[0]), !d.HasArg("silent"))
		w.deliver()
	case "posts":
		arg(d, "are", &s.w.posts)
	case "called":
		s.called()
	case "restart":
		if w.before50 = ""; d.HasArg("before50") {
			w.before50 = pods[0]
		}
		w.node(pods[0]).start()
		w.deliver()
	case "pause":
		w.node(pods[0]).paused = true
	case "stall":
		w.node(pods[0]).stalled = true
	case "resume":
		w.resume(w.node(pods[0]))
		w.deliver()
	case "cut", "heal":
		w.faults.cut[[2]string{pods[0], pods[1]}] = d.Cmd == "cut"
		if !d.HasArg("oneway") {
			w.faults.cut[[2]string{pods[1], pods[0]}] = d.Cmd == "cut"
		}
	case "reconnect":
		for i, pod := range pods[:2] {
			w.node(pod).step(replica.Event{Kind: replica.EventPeerUp, Address: w.node(pods[1-i]).address})
		}
		w.deliver()
	case "reset":
		for i, pod := range pods[:2] {
			if i == 1 && d.HasArg("oneway") {
				break
			}
			w.node(pod).step(replica.Event{Kind: replica.EventPeerDown, Address: w.node(pods[1-i]).address})
		}
		w.deliver()
	case "drop":
		w.faults.drop = append(w.faults.drop, s.rule(d, pods))
	case "keep":
		w.faults.keep = append(w.faults.keep, s.rule(d, pods))
	case "again":
		w.net, w.faults.kept = append(w.net, w.faults.kept...), nil
		w.deliver()
	case "arbiter":
		s.arbiter(d)
	case "drain":
		if w.arb.mode != arbiterDown { // a hand-over starts only while the arbiter answers
			w.node(pods[0]).step(replica.Event{Kind: replica.EventConfig, Fresh: true, Config: w.arb.copy()})
		}
		w.node(pods[0]).step(replica.Event{Kind: replica.EventDrain})
		if !d.HasArg("hold") {
			w.deliver()
		}
	case "stop":
		w.node(pods[0]).step(replica.Event{Kind: replica.EventStop})
		w.deliver()
	case "cursor":
		var seq int
		arg(d, "seq", &seq)
		w.node(pods[0]).step(replica.Event{Kind: replica.EventCursor, Seq: uint64(seq)})
		w.deliver()
	case "archive":
		s.archive(d, w.node(pods[0]))
	case "load":
		s.load(d, w.node(pods[0]))
	case "corrupt":
		s.corrupt(pods)
	case "forge":
		s.forge(d)
	case "zombie":
		s.zombie(w.node(pods[0]))
	default:
		return false
	}
	return true
}

// rule selects the frames to drop, or to keep.
func (s *script) rule(d *datadriven.TestData, pods []string) dropRule {
	rule := dropRule{from: pods[0], to: pods[1], n: 1}
	var typ string
	arg(d, "type", &typ)
	arg(d, "n", &rule.n)
	arg(d, "skip", &rule.skip)
	for t := range wire.Type(255) {
		if t.String() == typ {
			rule.typ = t
		}
	}
	if rule.typ == 0 {
		d.Fatalf(s.t, "type is %q, allowed: the name of a frame", typ)
	}
	return rule
}

// look shows state without changing it.
func (s *script) look(d *datadriven.TestData) bool {
	switch d.Cmd {
	case "status":
		for _, n := range s.w.nodes {
			if !n.up {
				s.w.logf("%s is down", n.name())
				continue
			}
			st := n.r.Status()
			freed := ""
			if st.FreedSeq != 0 {
				freed = fmt.Sprintf(" freed %d", st.FreedSeq)
			}
			s.w.logf("%s is %s; last %d commit %d cursor %d%s", n.name(), n.statusText(), st.LastSeq, st.CommitSeq, st.CursorSeq, freed)
		}
	case "logs":
		s.logs()
	case "entry":
		s.entry(d)
	default:
		return false
	}
	return true
}

// logs prints the log of every replica, one line when all are the same.
func (s *script) logs() {
	var texts []string
	for _, n := range s.w.nodes {
		if !n.up {
			continue
		}
		last, hash := n.st.Last()
		var b strings.Builder
		base, _ := n.st.Base()
		for seq := base + 1; seq <= last; seq++ {
			var e order.Entry
			if _, err := order.DecodeEntry(n.st.Get(seq), &e); err != nil {
				s.t.Fatal(err)
			}
			fmt.Fprintf(&b, " %d:%s", seq, e.Kind)
			if e.Kind == order.KindOrder {
				fmt.Fprintf(&b, "(%s)", order.ClOrdID(n.st.Get(seq)))
			}
		}
		texts = append(texts, b.String())
		s.w.logf("%s:%s", n.pod, b.String())
		if hash != n.st.HashAt(last) {
			s.t.Errorf("%s: hash of the last entry differs from itself", n.name())
		}
	}
	for _, t := range texts[1:] {
		if t != texts[0] {
			s.w.logf("the logs DIFFER")
			return
		}
	}
	s.w.logf("the logs are equal")
}
