package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// frame is a vector before it is written: a message, or bytes alone.
type frame struct {
	name    string
	message any // nil: the example of the table of frames
	bytes   []byte
}

// ofClient reports whether a client sends frames of this row, or gets them.
func ofClient(f *wire.Frame) bool {
	switch f.Name {
	case "Challenge", "Proof", "ProofAnswer":
		return false
	}
	return f.From&(wire.FromEither|wire.FromClient|wire.FromNode) != 0
}

// sentBy is who of client and node sends it.
func sentBy(f *wire.Frame) string {
	switch f.Name {
	case "Hello":
		return "client"
	case "Welcome":
		return "node"
	case "Authenticate":
		return "client"
	case "Goaway":
		return "either"
	}
	if f.From&wire.FromClient != 0 {
		return "client"
	}
	return "node"
}

func frameVectors() (file, error) {
	f := file{name: "frames.json", about: "A frame with these fields is these bytes, written and read."}
	for i := range wire.Frames {
		row := &wire.Frames[i]
		if !ofClient(row) {
			continue
		}
		for _, v := range framesOf(row) {
			if v.message != nil {
				v.bytes = row.Encode(v.message)
			}
			o, err := frameVector(row, v)
			if err != nil {
				return f, fmt.Errorf("%s: %w", v.name, err)
			}
			f.vectors = append(f.vectors, o)
		}
	}
	return f, nil
}

// frameVector decodes the bytes, so that the fields are what the codec reads.
func frameVector(row *wire.Frame, v frame) (object, error) {
	m, err := row.Decode(v.bytes)
	if err != nil {
		return nil, err
	}
	if v.message != nil && !bytes.Equal(row.Encode(m), v.bytes) {
		return nil, fmt.Errorf("decoded and encoded it is other bytes")
	}
	return object{{"name", v.name}, {"frame", row.Name}, {"type", small(row.Type)}, {"sentBy", sentBy(row)},
		{"flags", small(wire.FrameFlags(v.bytes))}, {"partition", small(wire.FramePartition(v.bytes))},
		{"fields", fieldsOf(m)}, {"hex", v.bytes}}, nil
}

// framesOf are the vectors of a row: its example on the page, and its edges.
func framesOf(row *wire.Frame) []frame {
	out := []frame{{name: row.Name, message: row.Example}}
	for i, m := range edges[row.Type] {
		name := m.name
		if name == "" {
			name = fmt.Sprint(i)
		}
		out = append(out, frame{name: row.Name + ", " + name, message: m.message})
	}
	if row.Type == wire.TypeTable { // what is reserved, and flags that are not known, are ignored
		b := row.Encode(row.Example)
		b[5], b[6] = 0x80, 0xff
		out = append(out, frame{name: "Table, unknown flags and a partition where none is meant", bytes: b})
	}
	if row.Type == wire.TypeAck {
		b := row.Encode(row.Example)
		b[38], b[52] = 1, 1
		out = append(out, frame{name: "Ack, reserved bytes are ignored", bytes: b})
	}
	return out
}

const most = math.MaxUint64

var long = bytes.Repeat([]byte("n"), wire.MaxString)

// longest is the longest name of a region.
var longest = bytes.Repeat([]byte("r"), 48)

// edge is a message that is in order and unusual.
type edge struct {
	name    string
	message any
}

var edges = map[wire.Type][]edge{
	wire.TypeHello: {
		{"of a client", &wire.Hello{MinVersion: wire.MinVersion, MaxVersion: wire.Version, Role: wire.RoleClient, Grid: []byte("orders"), Member: []byte("gateway-1")}},
		{"of a client that takes any grid", &wire.Hello{MinVersion: wire.MinVersion, MaxVersion: wire.Version, Role: wire.RoleClient}},
		{"longest names", &wire.Hello{MinVersion: 1, MaxVersion: math.MaxUint16, Role: wire.RoleAdmin, BootID: most, Grid: long, Member: long, Address: long}},
	},
	wire.TypeWelcome: {{"longest names", &wire.Welcome{Version: math.MaxUint16, Features: math.MaxUint16, MaxFrame: math.MaxUint32, Window: math.MaxUint32, Grid: long, Member: long}}},
	wire.TypeGoaway: {
		{"no text", &wire.Goaway{Code: wire.GoawayDraining}},
		{"longest text", &wire.Goaway{Code: wire.GoawayAuthRetry, Text: []byte(strings.Repeat("t", wire.MaxText))}},
		{"a code of a later release", &wire.Goaway{Code: 999, Text: []byte("new")}},
	},
	wire.TypeAuthenticate: {{"any bytes", &wire.Authenticate{ReqID: most, Token: bytes.Repeat([]byte{0xff, 0}, 200)}}},
	wire.TypeAuthenticated: {
		{"no authentication", &wire.Authenticated{ReqID: 1, Permissions: 31}},
		{"permissions of a later release", &wire.Authenticated{ReqID: 1, Permissions: math.MaxUint16, ForS: math.MaxUint32, User: long}},
	},
	wire.TypeTableRequest: {{"largest reqID", &wire.Request{ReqID: most}}},
	wire.TypeTable: {
		{"nothing known", &wire.Table{ReqID: 1, Partitions: 1}},
		{"orders go by symbol", &wire.Table{ReqID: 1, Partitions: 4, BySymbol: true}},
		{"no primary, learners, a member without an address", &wire.Table{ReqID: most, Partitions: 1024, Parts: []wire.TablePart{
			{Partition: 0, Epoch: 0, Primary: wire.NoPrimary},
			{Partition: 7, Epoch: most, Lineage: math.MaxUint32, Primary: wire.NoPrimary, NInSync: 0, Members: []wire.TableMember{{Member: []byte("g-s0-0/00000000000000a1")}}},
			{Partition: 1023, Epoch: 9, Lineage: 2, Primary: 1, NInSync: 2, Members: eight()},
		}}},
	},
	wire.TypeOpenSession: {{"first attempt", &wire.OpenSession{ReqID: 1, IDHi: 0, IDLo: 1, Attempt: 1}},
		{"largest", &wire.OpenSession{ReqID: most, IDHi: most, IDLo: most, Epoch: most, Attempt: most}}},
	wire.TypeSessionOpened: {{"largest", &wire.SessionOpened{ReqID: most, Slot: math.MaxUint32, Generation: math.MaxUint32, Window: math.MaxUint32, LastClientSeq: most, Epoch: most}}},
	wire.TypeRegionApply: {
		{"of a value that stays for ever", &wire.RegionApply{Epoch: most, Slot: math.MaxUint32, Generation: math.MaxUint32, ClientSeq: most, Received: most - 1, Op: wire.RegionPut, If: wire.RegionIfAbsent, LifeNs: -1, Region: []byte("r"), Key: []byte("k")}},
		{"a patch", &wire.RegionApply{ClientSeq: 1, Op: wire.RegionPatch, Offset: math.MaxUint32, Region: longest, Key: []byte("k"), Value: long}},
		{"a take of a version", &wire.RegionApply{ClientSeq: 1, Op: wire.RegionTake, If: wire.RegionIfVersion, Version: most, Region: []byte("r"), Key: long}},
		{"a remove", &wire.RegionApply{ClientSeq: 9, Received: 3, Op: wire.RegionRemove, Region: []byte("r"), Key: []byte("k")}},
		{"a clear", &wire.RegionApply{ClientSeq: 1, Op: wire.RegionClear, Region: []byte("r")}},
	},
	wire.TypeRegionBatch: {
		{"two puts that stay for ever", &wire.RegionBatch{Epoch: most, Slot: math.MaxUint32, Generation: math.MaxUint32, ClientSeq: most, Received: most - 1, Op: wire.RegionPut, Count: 2, LifeNs: -1, Region: longest,
			Items: wire.AppendRegionItem(wire.AppendRegionItem(nil, wire.RegionPut, []byte("a"), long), wire.RegionPut, []byte("b"), nil)}},
		{"a remove", &wire.RegionBatch{ClientSeq: 1, Op: wire.RegionRemove, Count: 1, Region: []byte("r"), Items: wire.AppendRegionItem(nil, wire.RegionRemove, []byte("k"), nil)}},
		{"a patch of no bytes", &wire.RegionBatch{ClientSeq: 1, Op: wire.RegionPatch, Count: 1, Offset: math.MaxUint32, Region: []byte("r"), Items: wire.AppendRegionItem(nil, wire.RegionPatch, long, nil)}},
	},
	wire.TypeRegionBatched: {{"a retry", &wire.RegionBatched{Ack: wire.Ack{ClientSeq: most, Seq: most, Epoch: most, Slot: math.MaxUint32, Copies: 4, Flags: wire.AckDup, Hash: most, Lineage: math.MaxUint32}, Skipped: 511}}},
	wire.TypeRegionApplied: {
		{"no value", &wire.RegionApplied{Ack: wire.Ack{ClientSeq: most, Seq: most, Epoch: most, Slot: math.MaxUint32, Copies: 4, Flags: wire.AckDup, Hash: most, Lineage: math.MaxUint32}}},
		{"a take of a value without bytes", &wire.RegionApplied{Ack: wire.Ack{ClientSeq: 1, Seq: 2, Epoch: 3, Copies: 2, Flags: wire.RegionHasValue}}},
	},
	wire.TypeRegionGet: {{"longest name", &wire.RegionGet{ReqID: most, Mode: wire.ModeBackup, Region: longest, Key: long}}},
	wire.TypeRegionGot: {
		{"no value", &wire.RegionGot{ReqID: most, Epoch: most, CommitSeq: most}},
		{"a value without bytes that does not expire", &wire.RegionGot{ReqID: 1, Epoch: 1, CommitSeq: 2, Version: 1}},
	},
	wire.TypeRegionScan: {{"from the beginning", &wire.RegionScan{ReqID: most, Mode: wire.ModeConfirmed, Region: longest}}},
	wire.TypeRegionPage: {
		{"the last one, without rows", &wire.RegionPage{ReqID: 1, Epoch: 1, CommitSeq: 1}},
		{"no rows, and there is another", &wire.RegionPage{ReqID: most, Epoch: most, CommitSeq: most, Next: long}},
		{"two rows", &wire.RegionPage{ReqID: 1, Epoch: 1, CommitSeq: 9, Rows: wire.AppendRegionRow(
			wire.AppendRegionRow(nil, &wire.RegionRow{Version: 1, Key: []byte("a")}), &wire.RegionRow{Version: 9, ExpireNs: math.MaxInt64, Key: long, Value: long})}},
	},
	wire.TypeRegionList:   {{"largest reqID", &wire.RegionList{ReqID: most}}},
	wire.TypeRegionListed: {{"none", &wire.RegionListed{ReqID: 1}}},
	wire.TypeSubmit: {{"no payload", &wire.Submit{Slot: 4, Generation: 1, ClientSeq: 2}},
		{"an order", &wire.Submit{Epoch: most, Slot: math.MaxUint32, Generation: math.MaxUint32, ClientSeq: most, Payload: newOrder("ORD-1")}}},
	wire.TypeAck: {{"first reply, entry freed", &wire.Ack{ClientSeq: 1, Seq: 1, Epoch: 1, Copies: 1}},
		{"largest", &wire.Ack{ClientSeq: most, Seq: most, Epoch: most, Slot: math.MaxUint32, Copies: 255, Flags: 255, Hash: most, Lineage: math.MaxUint32}}},
	wire.TypeReject:     rejects(),
	wire.TypeNotPrimary: {{"none known", &wire.NotPrimary{RequestID: most, Epoch: most, Slot: math.MaxUint32, ForType: wire.TypeGet}}},
	wire.TypeGet: {{"by seq, leased", &wire.Get{ReqID: 1, Seq: most, By: wire.ByID, Mode: wire.ModeLeased}},
		{"longest key, of a backup", &wire.Get{ReqID: most, By: wire.ByClOrdID, Mode: wire.ModeBackup, Key: long}},
		{"of a FIX session", &wire.Get{ReqID: 2, By: wire.ByFix, Mode: wire.ModeConfirmed, Key: wire.FixKey([2]uint64{1, 2}, 20780, []byte("ORD-1"))}}},
	wire.TypeGetReply: {{"not found", &wire.GetReply{ReqID: 1, Epoch: 3, CommitSeq: 9, Status: wire.GetNotFound}},
		{"freed", &wire.GetReply{ReqID: 1, Epoch: 3, CommitSeq: 9, Status: wire.GetFreed, Freed: most}},
		{"an order", &wire.GetReply{ReqID: most, Epoch: most, CommitSeq: most, Entry: orderEntry()}}},
	wire.TypeReadLog: {{"largest", &wire.ReadLog{ReqID: most, FromSeq: most, MaxBytes: math.MaxUint32}}},
	wire.TypeLogChunk: {{"behind the committed prefix", &wire.LogChunk{ReqID: 1, Epoch: 3, CommitSeq: 5, LastSeq: 6, LastHash: most, FirstSeq: 6}},
		{"three entries", &wire.LogChunk{ReqID: 1, Epoch: 3, CommitSeq: 3, LastSeq: 3, LastHash: order.Hash(orderEntry()), FirstSeq: 1, Entries: logBytes()}}},
	wire.TypePing: {{"largest reqID", &wire.Request{ReqID: most}}},
	wire.TypePong: {{"largest reqID", &wire.Request{ReqID: most}}},
	wire.TypeFollow: {{"all from the first entry", &wire.Follow{ReqID: 1, FromSeq: 1, Window: 1}},
		{"from the end", &wire.Follow{ReqID: 1, FromSeq: 0, Window: math.MaxUint32}},
		{"longest account", &wire.Follow{ReqID: most, FromSeq: most, FromHash: most, Lineage: math.MaxUint32, Window: 1, Filter: wire.FilterAccount, Value: long[:wire.MaxFilter]}}},
	wire.TypeFollowEntries: {{"none examined", &wire.FollowEntries{ReqID: 1, From: 4, Through: 3, CommitSeq: 3, ThroughHash: order.Hash(orderEntry()), Lineage: 1, Window: 4096}},
		{"examined, none let through", &wire.FollowEntries{ReqID: 1, From: 4, Through: 9, CommitSeq: 12, ThroughHash: most, Lineage: math.MaxUint32, Window: math.MaxUint32}},
		{"three entries", &wire.FollowEntries{ReqID: 1, From: 1, Through: 3, CommitSeq: 3, ThroughHash: order.Hash(orderEntry()), Lineage: 1, Window: 4096, Entries: logBytes()}}},
	wire.TypeFollowCredit: {{"end of the stream", &wire.FollowCredit{ReqID: most, Through: most}}},
	wire.TypeFollowEnd:    ends(),
	wire.TypeStream: {{"all from the first entry", &wire.Stream{ReqID: 1, FromSeq: 1, Window: 1, What: wire.StreamOrders | wire.StreamExecutions}},
		{"longest account", &wire.Stream{ReqID: most, FromSeq: most, FromHash: most, Lineage: math.MaxUint32, Window: 1, What: wire.StreamOrders, Accounts: [][]byte{long[:wire.MaxSelectedValue]}}}},
	wire.TypeStreamPart: {{"none examined", &wire.StreamPart{ReqID: 1, From: 4, Through: 3, CommitSeq: 3, ThroughHash: order.Hash(orderEntry()), Lineage: 1, Window: 4096}},
		{"three entries", &wire.StreamPart{ReqID: 1, From: 1, Through: 3, CommitSeq: 3, ThroughHash: order.Hash(orderEntry()), Lineage: 1, Window: 4096, Entries: logBytes()}}},
	wire.TypeStreamSelect: {{"nothing", &wire.StreamSelect{ReqID: 1, Version: 1, QuietMs: 1}},
		{"everything", &wire.StreamSelect{ReqID: most, Version: math.MaxUint32, QuietMs: wire.MaxQuietMs, Selectors: []wire.Selector{{What: wire.SelectOrders | wire.SelectExecutions | wire.SelectOther}}}},
		{"longest values", &wire.StreamSelect{ReqID: 1, Version: 2, QuietMs: 100, Selectors: []wire.Selector{{What: 1 << 3, Account: long[:wire.MaxSelectedValue], Symbol: long[:wire.MaxSelectedValue]}, {What: wire.SelectOrders, Symbol: []byte("IBM")}}}}},
	wire.TypeStreamSelected: {{"largest", &wire.StreamSelected{ReqID: most, Version: math.MaxUint32, From: most}}},
	wire.TypeAdvance:        {{"longest name", &wire.Advance{ReqID: most, Seq: most, Hash: most, Name: long}}},
	wire.TypeQuery:          {{"longest question", &wire.Query{ReqID: most, MinSeq: most, MinHash: most, TimeoutMs: math.MaxUint32, MaxBytes: math.MaxUint32, Explain: true, Question: bytes.Repeat([]byte{7}, 300)}}},
	wire.TypeQueryRows:      {{"two rows", &wire.QueryRows{ReqID: most, Rows: 2, Values: []byte{1, 0, 1, 1, 2}}}},
	wire.TypeQueryEnd:       queryEnds(),
	wire.TypeQueryCancel:    {{"largest", &wire.QueryCancel{ReqID: most}}},
	wire.TypeAdvanced:       {{"largest", &wire.Advanced{ReqID: most, Seq: most}}},
}

// eight are as many members as a Table may list.
func eight() (out []wire.TableMember) {
	for i := range wire.MaxTableMembers {
		out = append(out, wire.TableMember{Address: fmt.Appendf(nil, "[fd00::%d]:7400", i+1), Member: fmt.Appendf(nil, "g-s1-%d/%016x", i, 0xc0+i)})
	}
	return out
}

// rejects has a refusal of every code, and one that is not known yet.
func rejects() (out []edge) {
	for code := wire.CodeBadFIX; code < 30; code++ {
		if strings.HasPrefix(code.String(), "Code") && code != 29 {
			continue
		}
		out = append(out, edge{code.String(), &wire.Reject{RequestID: 7, Slot: 4, Code: code, ForType: wire.TypeSubmit, Tag: 0, Detail: 1 << 40, Limit: 1 << 41, Text: []byte(code.String() + ": allowed: …")}})
	}
	return append(out, edge{"largest", &wire.Reject{RequestID: most, Slot: math.MaxUint32, Code: math.MaxUint16, ForType: 255, Tag: math.MaxUint32, Detail: most, Limit: most, Text: long}})
}

func queryEnds() (out []edge) {
	for code := range wire.QueryEndCodes {
		c := wire.QueryEndCode(code)
		out = append(out, edge{c.String(), &wire.QueryEnd{ReqID: 1, At: 9, Hash: most, Epoch: 3, Lineage: 1, Code: c, Base: 4, Scanned: 5, Matched: 1, Body: []byte(c.String())}})
	}
	return out
}

func ends() (out []edge) {
	for r := wire.EndSnapshotRequired; r <= wire.EndReasons; r++ {
		out = append(out, edge{r.String(), &wire.FollowEnd{ReqID: 1, Reason: r, Seq: 9, Hash: most, Text: []byte(r.String())}})
	}
	return out
}
