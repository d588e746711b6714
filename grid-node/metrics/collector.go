// Package metrics exports a grid node's metrics to Prometheus. The hot path pays nothing:
// counters and histograms are plain memory of the loop, and a scrape asks the loop for a
// copy.
package metrics

import (
	"math"
	"strings"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/histogram"
)

const prefix = "ordergrid_node_"

// Collector turns snapshots into metrics.
type Collector struct {
	// Snapshot returns nil when the loop did not answer in time; the scrape then fails
	// instead of showing old figures.
	Snapshot func() (*Snapshot, error)
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prefix+name, help, labels, nil)
}

var (
	orderLatency = desc("order_latency_seconds", "Time from receiving an order on the primary until every copy has it.")
	roundTrip    = desc("replication_round_trip_seconds", "Time from sending entries to another member until its acknowledgement.")
	preprocess   = desc("preprocess_seconds", "Time to parse, check and store one order on the primary; one in 64 is measured.")

	postprocess = desc("postprocess_seconds", "Time to handle one acknowledgement of another member on the primary: commit what it completes, write the answers; one in 64 is measured.")

	tickInterval = desc("loop_tick_interval_seconds", "Time between two ticks of the loop: half of --beacon, plus the delay of a loop that was held up.")

	wakeUp = desc("loop_wakeup_seconds", "Time that one wake-up of the loop took, from its start to the end of its writes: nothing else is served meanwhile.")

	orders         = desc("orders_total", "Orders answered by this node as primary, by outcome.", "partition", "outcome")
	rejects        = desc("rejects_total", "Requests refused, by reason.", "partition", "reason")
	gaps           = desc("gaps_total", "Gaps found in a sequence: client to server (clientSeq skipped), server to server (entries missed).", "partition", "side")
	redirects      = desc("redirects_total", "Requests answered with another node's address, or with none: this node is not the partition's primary.")
	reads          = desc("reads_total", "Reads answered, by mode.", "partition", "mode")
	sessionsOpened = desc("sessions_opened_total", "Client sessions opened.", "partition")
	fixCopies      = desc("fix_copies_total", "Drop copies: reports that another FIX session gets a copy of; counted by the primary.", "partition")
	fixTargets     = desc("fix_copy_targets", "FIX sessions of the log that get copies of the reports of others, at most 16; /status of the node lists them.", "partition")
	fixLapses      = desc("fix_lapses_total", "FIX sessions whose orders were cancelled because their counterparty was gone (cancelOnDisconnect); counted by the primary.", "partition")
	evicted        = desc("sessions_evicted_total", "Client sessions closed to make room for others.", "partition")
	resends        = desc("resends_total", "Times entries were sent to a member again.", "partition")
	prepares       = desc("prepares_total", "Batches of entries sent to other members.", "partition")
	beacons        = desc("beacons_total", "Heartbeats, by what happened: sent and acknowledged as primary, answered as another member, late (answered, and more than three beacon times after the one before).", "partition", "event")
	learnerBytes   = desc("learner_sent_bytes_total", "Bytes of the log sent to members that catch up.", "partition")
	stored         = desc("entries_stored_total", "Log entries stored, of all kinds.", "partition")
	staleFrames    = desc("stale_frames_total", "Frames of another epoch or of a former process, dropped.", "partition")
	badPeerFrames  = desc("bad_peer_frames_total", "Frames between nodes that could not be decoded.", "partition")
	configChanges  = desc("configuration_changes_total", "Configurations adopted.", "partition")
	alarms         = desc("alarms_total", "Alarms raised, by kind.", "alarm")

	role       = desc("partition_role", "1 for the role this node has in the partition.", "partition", "role")
	suspended  = desc("partition_suspended", "1 while the primary does not acknowledge because a change of the configuration is under way.", "partition")
	epoch      = desc("partition_epoch", "Epoch of the configuration this node follows.", "partition")
	lineage    = desc("partition_lineage", "Lineage of the configuration: rises when the loss of data was accepted.", "partition")
	inSync     = desc("in_sync_members", "Members that hold every acknowledged order.", "partition")
	replicas   = desc("replicas", "Copies of each partition that the grid is to have, the primary's included.")
	lastSeq    = desc("last_sequence", "Sequence number of the last entry stored.", "partition")
	commitSeq  = desc("committed_sequence", "Sequence number up to which every copy is known to hold the log.", "partition")
	lag        = desc("replication_lag_entries", "Entries stored and not yet known to be committed.", "partition")
	lagSeconds = desc("replication_lag_seconds", "Age of the oldest entry stored and not yet known to be committed; 0 without one.", "partition")
	sessions   = desc("sessions", "Client sessions open.", "partition")
	ordersHeld = desc("orders_held", "Orders in memory.", "partition")
	freedSeq   = desc("freed_sequence", "Last log entry that is not in memory any more; 0 when nothing was freed.", "partition")
	sinkDepth  = desc("sink_depth_entries", "Committed entries that the sink does not hold yet.", "partition", "sink")
	sinkAge    = desc("sink_age_seconds", "Age of the oldest committed entry that the sink does not hold yet, 0 if it holds all orders; absent on a node that does not write, a backup.", "partition", "sink")

	inspected = desc("log_inspected_sequence", "The last committed entry that was read again and checked: that it is whole, and follows the one before.", "partition")
	broken    = desc("log_broken_total", "Committed entries in memory that could not be right when they were read again.", "partition")

	toRestore     = desc("restore_remaining_entries", "Entries of the archive that this node has to load before it can claim the partition; 0 when it is claimed, or not to be restored.", "partition")
	restoreFailed = desc("restore_failures_total", "Attempts to load the partition from the archive that failed.", "partition")

	memoryUsed  = desc("memory_used_bytes", "Memory of orders and their indexes.")
	memoryLimit = desc("memory_limit_bytes", "Memory that orders and their indexes may use.")

	memoryRefuse   = desc("memory_refuse_bytes", "Use of that memory from which orders are refused; the rest is for what the grid itself logs.")
	memoryFreeable = desc("memory_freeable_bytes", "Memory of orders that may be freed, because every sink holds them; 0 if retention keeps all.")
	memoryFullIn   = desc("memory_full_in_seconds", "Time until orders are refused, at the rate of the last half minute and without what may be freed; +Inf while nothing grows, 0 while orders are refused.")
	memoryFull     = desc("memory_full", "1 while orders are refused for want of memory, here or on a copy.")

	fabric      = desc("fabric_info", "1; what the data port is on: the network (namespace/name, or pods), the network interface that has the address others use, the kind of its link (ethernet, infiniband, loopback, other, unknown), the transport (tcp, tls).", "network", "interface", "address", "link", "transport")
	connections = desc("connections", "Open connections, by the role of the other end.", "role")

	protected = desc("peer_connections", "Open connections to other nodes, by what protects them: tls, key (the grid's peer key), none (the other end has proved nothing, and may not be a node of the grid).", "protection")

	accepted       = desc("connections_accepted_total", "Connections accepted.")
	refused        = desc("connections_refused_total", "Connections closed at accept: a limit was reached, that of connections or that of TLS handshakes that wait for their turn.")
	noTLS          = desc("tls_handshake_failures_total", "Accepted connections closed because their TLS handshake failed.")
	handshakes     = desc("tls_handshakes", "TLS handshakes of accepted connections under way, by what they wait for: peer (what the other end has to send), turn (they compute, or wait for their turn to).", "waits_for")
	nodesRefused   = desc("nodes_refused_total", "Connections closed because the other end said to be a node and did not prove it: by a node's certificate, or by the grid's peer key.")
	clientsRefused = desc("clients_refused_total", "Connections closed because of the client's identity, by reason: unauthenticated (no valid proof in time), not_permitted (no rule grants it a permission), unavailable (its token could not be reviewed), too_many (it has, or all clients have, as many connections as allowed).", "reason")
	notPermitted   = desc("requests_not_permitted_total", "Requests refused because the client lacks the permission they require.", "permission")
	tokenReviews   = desc("token_reviews_total", "Reviews of clients' tokens, by result: accepted, refused, failed (the API server did not answer), cached (answered from memory), turned_away (too many were queued).", "result")
	rulesUnread    = desc("authorization_rules_unread", "1 while the authorization rules that are mounted cannot be read: the previous rules stay in use, and without previous rules no client has a permission; absent without authentication of clients.")
	rulesRead      = desc("authorization_rules_read_seconds", "When the authorization rules in use were read, in seconds since 1970; 0 before any could be read; absent without authentication of clients.")
	tlsExpires     = desc("tls_certificate_expires_seconds", "When the certificate in use ends, in seconds since 1970; absent without TLS.")
	slowClosed     = desc("connections_slow_closed_total", "Connections closed because the other end reads too slowly, or because it was the longest without reading when unread output exceeded its limit.")
	unfinished     = desc("connections_unfinished_closed_total", "Connections closed because a client did not finish a frame in time, or because unfinished frames of all clients held too much.")
	waiting        = desc("connections_waiting", "Connections whose requests, other than orders, wait for their turn.")
	rests          = desc("loop_rests_total", "Times deferrable work (new connections, requests other than orders, long answers) had used its share of the loop's time and was paused.")
	waits          = desc("connections_waits_total", "Times a connection's requests, other than orders, were deferred: a wake-up of the loop had done its share of such work.")
	resets         = desc("connections_reset_total", "Connections ended by a reset, because the kernel still held output that the other end had not read.")
	unread         = desc("unread_bytes", "Output that clients have not read yet.")
	inputHeld      = desc("unfinished_bytes", "Buffers of clients' unfinished or deferred frames.")
	httpConns      = desc("http_connections", "Connections to the port of metrics and health.")
	httpEnded      = desc("http_connections_ended_total", "Connections to the port of metrics and health that were ended to make room for others.")
	followStreams  = desc("follow_streams", "Streams of followers.")
	followWindows  = desc("follow_window_bytes", "Bytes of log that the windows of all streams allow to be on their way; refused beyond a quarter of the memory for clients.")
	followExamined = desc("follow_examined_entries_total", "Log entries that were looked at for a follower, sent or not.")
	followEntries  = desc("follow_sent_entries_total", "Log entries sent to followers.")
	followBytes    = desc("follow_sent_bytes_total", "Bytes of frames sent to followers.")
	followEnds     = desc("follow_ends_total", "Streams that ended, by reason: those of FollowEnd, or connection_lost.", "reason")
	followRejected = desc("follow_rejected_total", "Streams rejected by a bound on streams or on windows, of the connection, the client or the node.")
	viewLag        = desc("view_lag_entries", "Committed entries that the view of the partition's orders lacks; absent without --views.", "partition")
	viewMemory     = desc("view_bytes", "Memory in use by the view of the partition's orders, without sorted runs; absent without --views.", "partition")
	viewEnded      = desc("view_incomplete", "1 while the partition has no view, or one that ends before its log does: /status has the reason; absent without --views.", "partition")
	questionsOpen  = desc("questions", "Questions about orders that wait, run, or have an answer that the client has not read.")
	questionEnds   = desc("questions_total", "Questions about orders that ended, by result: those of QueryEnd.", "result")
	questionsTurn  = desc("questions_rejected_total", "Questions rejected by a bound on how many may be open, of a client or of the node.")
	questionsGiven = desc("question_rows_returned_total", "Rows, or groups, of answers to questions.")
	questionTook   = desc("question_seconds", "From a question received to its answer made, of those that were answered: with its wait for an entry and for others. By way: index, scan, groups.", "way")
	questionRows   = desc("question_rows_scanned_total", "Rows that questions looked at.")
	paused         = desc("connections_paused_total", "Times reading a connection was stopped until its replies were read.")
	badFrames      = desc("bad_frames_total", "Connections closed because of a frame that cannot be right.")
	helloTimeouts  = desc("hello_timeouts_total", "Connections closed because no Hello came, or because too many connections without one, or without a proof, were open.")
	peerDropped    = desc("peer_frames_dropped_total", "Frames for another node dropped for want of a connection; the protocol sends them again.")
	wakeUps        = desc("loop_wakeups_total", "Wake-ups of the loop with something to do.")
	readCalls      = desc("loop_reads_total", "Receive system calls that returned data.")
	writeCalls     = desc("loop_writes_total", "Send system calls.")
	bytesIn        = desc("received_bytes_total", "Bytes received on the data port.")
	bytesOut       = desc("sent_bytes_total", "Bytes sent on the data port.")
	proposals      = desc("arbiter_proposals_total", "Changes of a configuration proposed to the arbiter.")
	arbiterErrors  = desc("arbiter_errors_total", "Reads and watches of the arbiter that failed.")
	restarts       = desc("replica_restarts_total", "Replicas that were discarded, with their orders, and joined anew as a new member.")
	drains         = desc("drains_total", "Partitions that this process has left since SIGTERM, by outcome: left (handed over, retired), stopped (without waiting), timed_out.", "outcome")
	beaconDials    = desc("liveness_dials_total", "Attempts to open a liveness connection to another node.")
	beaconDropped  = desc("liveness_dropped_total", "Beacons dropped for want of a liveness connection; the next one follows soon.")
	beaconBad      = desc("liveness_bad_frames_total", "Liveness connections closed because of a frame that cannot be right.")
	loopError      = desc("loop_unresponsive", "The loop did not answer the scrape.")
)

// Describe implements prometheus.Collector by collecting: the set of metrics is fixed.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, list := range [][]*prometheus.Desc{allDescs, journalDescs, limitDescs, exchangeDescs, regionDescs, functionDescs} {
		for _, d := range list {
			ch <- d
		}
	}
}

var allDescs = []*prometheus.Desc{
	orderLatency, roundTrip, preprocess, postprocess, tickInterval, wakeUp, loopStalls, loopStalled, threadCPU, threadWaited, threadFaults, threadSwitches, beacons, learnerBytes, drains, beaconDials, beaconDropped, beaconBad, orders, rejects, gaps, redirects, reads, sessionsOpened, evicted, fixCopies, fixLapses, resends, prepares,
	stored, staleFrames, badPeerFrames, configChanges, alarms, role, suspended, epoch, lineage, inSync, replicas, lastSeq, commitSeq, lag, lagSeconds,
	sessions, ordersHeld, freedSeq, sinkDepth, sinkAge, inspected, broken, toRestore, restoreFailed, memoryUsed, memoryLimit, memoryRefuse, memoryFreeable, memoryFullIn, memoryFull, fabric, cpusInfo, connections, protected, accepted, refused, noTLS, handshakes, nodesRefused, clientsRefused, notPermitted, tokenReviews, rulesUnread, rulesRead, tlsExpires, slowClosed, unfinished, httpConns, httpEnded, paused, waiting, waits, rests, resets, unread, inputHeld,
	viewLag, viewMemory, viewEnded, questionsOpen, questionEnds, questionsTurn, questionRows, questionsGiven, questionTook, followStreams, followWindows, followExamined, followEntries, followBytes, followEnds, followRejected,
	badFrames, helloTimeouts, peerDropped, wakeUps, readCalls, writeCalls, bytesIn, bytesOut, proposals, arbiterErrors, restarts,
	peerRTT, peerRTTVar, peerSilence, peerUnacked, peerRetransmits, peerAcked, peerReceived, arbiterAge,
}

// emitter shortens the sending of constant metrics.
type emitter chan<- prometheus.Metric

func (e emitter) counter(d *prometheus.Desc, v uint64, labels ...string) {
	e <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

func (e emitter) gauge(d *prometheus.Desc, v float64, labels ...string) {
	e <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// seconds of a time in nanoseconds.
func (e emitter) seconds(d *prometheus.Desc, ns int64, labels ...string) {
	e <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(ns)*1e-9, labels...)
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	s, err := c.Snapshot()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(loopError, err)
		return
	}
	ch <- histogram.Metric(orderLatency, &s.Loop.Order)
	for way := range s.Questions.Took {
		ch <- histogram.Metric(questionTook, &s.Questions.Took[way], query.Way(way).String())
	}
	ch <- histogram.Metric(roundTrip, &s.Loop.RoundTrip)
	ch <- histogram.Metric(preprocess, &s.Loop.Preprocess)
	ch <- histogram.Metric(postprocess, &s.Loop.Postprocess)
	ch <- histogram.Metric(tickInterval, &s.Loop.Tick)
	ch <- histogram.Metric(wakeUp, &s.Loop.WakeUp)
	e := emitter(ch)
	e.threads(s)
	for i := range s.Partitions {
		e.partitionCounters(&s.Partitions[i])
		e.partitionGauges(&s.Partitions[i])
		e.limits(&s.Partitions[i])
		e.exchange(&s.Partitions[i])
	}
	e.regions(s.Partitions)
	e.node(s)
	e.peerLinks(s)
	e.functions(s.Functions)
	e.postFunctions(s.PostFunctions)
	e.computeFunctions(s.ComputeFunctions)
	e.journal(s.Journal)
}

func (e emitter) partitionCounters(p *Partition) {
	c := &p.Counters
	var refusedOrders uint64
	for code, n := range c.Rejects {
		if code == 0 {
			continue
		}
		if name := wire.Code(code).String(); !strings.HasPrefix(name, "Code") {
			e.counter(rejects, n, p.Name, snake(name))
			refusedOrders += n
		}
	}
	e.counter(orders, c.Acks, p.Name, "acknowledged")
	e.counter(orders, c.Duplicates, p.Name, "duplicate")
	e.counter(orders, refusedOrders, p.Name, "rejected")
	e.counter(gaps, c.ClientGaps, p.Name, "client")
	e.counter(gaps, c.PeerGaps, p.Name, "server")
	e.counter(broken, p.Broken, p.Name)
	e.counter(reads, c.ReadsConfirmed, p.Name, "confirmed")
	e.counter(reads, c.ReadsLeased, p.Name, "leased")
	e.counter(reads, c.ReadsBackup, p.Name, "backup")
	e.counter(sessionsOpened, c.SessionsOpened, p.Name)
	e.counter(evicted, c.SessionsEvicted, p.Name)
	e.counter(fixCopies, c.FixCopies, p.Name)
	e.counter(fixLapses, c.FixLapses, p.Name)
	e.counter(resends, c.Resends, p.Name)
	e.counter(prepares, c.Prepares, p.Name)
	e.counter(stored, c.EntriesStored, p.Name)
	e.counter(beacons, c.Vitals.Sent, p.Name, "sent")
	e.counter(beacons, c.Vitals.Answered, p.Name, "acknowledged")
	e.counter(beacons, c.Vitals.Heard, p.Name, "answered")
	e.counter(beacons, c.Vitals.Late, p.Name, "late")
	e.counter(learnerBytes, c.LearnerBytes, p.Name)
	e.counter(staleFrames, c.StaleFrames+c.Vitals.Stale, p.Name)
	e.counter(badPeerFrames, c.BadFrames, p.Name)
	e.counter(configChanges, c.ConfigChanges, p.Name)
	e.counter(restoreFailed, p.Unread, p.Name)
}

func (e emitter) partitionGauges(p *Partition) {
	s := &p.Status
	for r := replica.RoleIdle; r <= replica.RoleStopped; r++ {
		e.gauge(role, b2f(r == s.Role), p.Name, r.String())
	}
	var cfg replica.Config
	if s.Config != nil {
		cfg = *s.Config
	}
	e.gauge(suspended, b2f(s.Suspended), p.Name)
	e.gauge(epoch, float64(cfg.Epoch), p.Name)
	e.gauge(lineage, float64(cfg.Lineage), p.Name)
	e.gauge(inSync, float64(len(cfg.InSync)), p.Name)
	e.gauge(lastSeq, float64(s.LastSeq), p.Name)
	e.gauge(commitSeq, float64(s.CommitSeq), p.Name)
	e.gauge(lag, float64(s.LastSeq-s.CommitSeq), p.Name)
	e.gauge(lagSeconds, float64(p.LagNs)*1e-9, p.Name)
	e.gauge(sessions, float64(s.Sessions), p.Name)
	e.gauge(fixTargets, float64(p.Targets), p.Name)
	e.gauge(ordersHeld, float64(p.Orders), p.Name)
	e.gauge(freedSeq, float64(p.Status.FreedSeq), p.Name)
	e.gauge(inspected, float64(p.Inspected), p.Name)
	if v := p.View; v != nil {
		e.gauge(viewLag, float64(v.Lag), p.Name)
		e.gauge(viewMemory, float64(v.Bytes), p.Name)
		e.gauge(viewEnded, b2f(v.Error != ""), p.Name)
	}
	e.gauge(toRestore, float64(p.Unloaded), p.Name)
	for i := range p.Sinks {
		o := &p.Sinks[i]
		e.gauge(sinkDepth, float64(s.CommitSeq-min(o.Seq, s.CommitSeq)), p.Name, o.Name)
		if o.Writes {
			e.gauge(sinkAge, float64(o.OldestNs)*1e-9, p.Name, o.Name)
		}
	}
}

func (e emitter) node(s *Snapshot) {
	for kind, n := range s.Node.Alarms {
		e.counter(alarms, n, snake(kind))
	}
	e.counter(redirects, s.Node.Redirects)
	e.gauge(memoryUsed, float64(s.MemoryUsed))
	e.gauge(memoryLimit, float64(s.MemoryLimit))
	e.memory(&s.Memory)
	e.gauge(replicas, float64(s.Replicas))
	if f := &s.Fabric; f.Address != "" {
		e.gauge(fabric, 1, f.Network, f.Interface, f.Address, f.Link, f.Transport)
	}
	e.cpus(s.Fabric.Interface)
	e.gauge(connections, float64(s.Clients), "client")
	e.gauge(connections, float64(s.Peers), "peer")
	live := 0
	for _, by := range []string{nodestatus.ProtectionNone, nodestatus.ProtectionKey, nodestatus.ProtectionTLS} {
		live += s.Liveness.Links[by]
		e.gauge(protected, float64(s.Liveness.Links[by]+s.DataLinks[by]), by)
	}
	e.gauge(connections, float64(live), "liveness")
	e.counter(beaconDials, s.Liveness.Dials)
	e.counter(beaconDropped, s.Liveness.Dropped)
	e.counter(beaconBad, s.Liveness.BadFrames)
	for outcome, n := range s.Node.Drains {
		e.counter(drains, n, outcome)
	}
	t := &s.Transport
	e.counter(accepted, t.Accepted)
	e.counter(refused, t.Refused)
	e.counter(noTLS, t.NoTLS)
	e.gauge(handshakes, float64(t.Greeting), "peer")
	e.gauge(handshakes, float64(t.Computing), "turn")
	e.counter(nodesRefused, s.Node.NodesRefused)
	e.access(s)
	if !s.TLSExpires.IsZero() {
		e.gauge(tlsExpires, float64(s.TLSExpires.Unix()))
	}
	e.counter(slowClosed, t.SlowPeers)
	e.counter(unfinished, t.Unfinished)
	e.counter(paused, t.Paused)
	e.gauge(httpConns, float64(s.HTTPConns))
	e.counter(httpEnded, s.HTTPEnded)
	e.gauge(waiting, float64(t.Waiting))
	e.counter(waits, t.Waits)
	e.counter(rests, t.Rests)
	e.counter(resets, t.Resets)
	e.gauge(unread, float64(t.Unread))
	e.gauge(inputHeld, float64(t.InputHeld))
	e.counter(wakeUps, t.WakeUps)
	e.counter(readCalls, t.Reads)
	e.counter(writeCalls, t.Writes)
	e.counter(bytesIn, t.BytesIn)
	e.counter(bytesOut, t.BytesOut)
	e.counter(badFrames, s.Node.BadFrames)
	e.counter(helloTimeouts, s.Node.HelloTimeouts)
	e.counter(peerDropped, s.Node.PeerFramesDropped)
	e.counter(proposals, s.Node.Proposals)
	e.counter(arbiterErrors, s.Node.ArbiterErrors)
	e.counter(restarts, s.Node.Restarts)
	e.follow(&s.Follow)
	e.questions(&s.Questions)
}

func (e emitter) memory(m *nodestatus.Memory) {
	fullIn := math.Inf(1)
	if m.SecondsUntilFull != nil {
		fullIn = *m.SecondsUntilFull
	}
	e.gauge(memoryRefuse, float64(m.RefuseBytes))
	e.gauge(memoryFreeable, float64(m.FreeableBytes))
	e.gauge(memoryFullIn, fullIn)
	e.gauge(memoryFull, b2f(m.Full))
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// snake turns "DuplicateClOrdID" into "duplicate_cl_ord_id" and "BadFIX" into "bad_fix",
// as label values are written in Prometheus.
func snake(s string) string {
	var b strings.Builder
	runes := []rune(s)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || (i+1 < len(runes) && unicode.IsLower(runes[i+1]))) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
