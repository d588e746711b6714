package postgres_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/gateway/sink/postgres"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

const grid = "trades"

// server is a PostgreSQL of the test's own.
func server(t testing.TB, o downstream.PostgresOptions) *downstream.Postgres {
	t.Helper()
	bin, err := downstream.FindPostgres()
	if err != nil {
		if os.Getenv("ORDERGRID_REQUIRE_POSTGRES") != "" {
			t.Fatal(err)
		}
		t.Skipf("%v; the sink is not tested", err)
	}
	p, err := downstream.NewPostgres(bin, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Remove)
	return p
}

// options are those of the superuser.
func options(t testing.TB, p *downstream.Postgres) postgres.Options {
	return postgres.Options{Grid: grid, Connection: postgres.Connection{URLFile: file(t, p.Admin())}}
}

func file(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(content+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// migrated is a server with the sink's tables.
func migrated(t testing.TB) (*downstream.Postgres, postgres.Options) {
	t.Helper()
	p := server(t, downstream.PostgresOptions{})
	o := options(t, p)
	if _, _, err := postgres.Migrate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return p, o
}

func open(t testing.TB, o postgres.Options) sink.Writer {
	t.Helper()
	target, err := postgres.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w, err := target.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// source makes the log of partition p0: the same entries in every call.
type source struct {
	maker   *fixorder.Maker
	at      client.Position
	epoch   uint32
	entries []client.LogEntry
	// fix replaces the message of an order.
	fix func(seq uint64) []byte
}

// begin is a second before midnight: with 10 us an entry, a log of 100,000 entries crosses it.
var begin = time.Date(2026, 11, 20, 23, 59, 59, 0, time.UTC)

const (
	perEntry    = 10 * time.Microsecond
	otherEvery  = 500   // entries, the next few are no orders
	epochEvery  = 40000 // entries
	otherInARow = 3
)

func newSource() *source {
	maker, err := fixorder.NewMaker(fixorder.FIX44, fixorder.ID{})
	if err != nil {
		panic(err)
	}
	return &source{maker: maker}
}

// skip goes on behind a position.
func (s *source) skip(to uint64) {
	for s.at.Seq < to {
		s.next(int(min(to-s.at.Seq, 1000)))
	}
}

// next is a batch of n entries.
func (s *source) next(n int) *sink.Batch {
	s.entries = s.entries[:0]
	b := &sink.Batch{Partition: 0, From: s.at.Seq + 1}
	for range n {
		e := s.entry()
		if e.Kind == order.KindOrder {
			b.Orders++
		}
		b.Bytes += len(e.Bytes)
		s.entries = append(s.entries, e)
	}
	b.Entries, b.Through = s.entries, s.at
	return b
}

func (s *source) entry() client.LogEntry {
	seq := s.at.Seq + 1
	e := order.Entry{Seq: seq, PrevHash: s.at.Hash, TimeNs: begin.UnixNano() + int64(seq)*int64(perEntry)}
	var payload []byte
	switch {
	case seq == 1 || seq%epochEvery == 0:
		s.epoch++
		s.at.Lineage++
		e.Kind = order.KindNoop
		payload = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(s.at.Lineage)), 7)
	case seq%otherEvery < otherInARow:
		e.Kind = order.KindCursor
		payload = binary.LittleEndian.AppendUint64(nil, seq-1)
	default:
		e.Kind = order.KindOrder
		at := time.Unix(0, e.TimeNs).UTC()
		payload = s.maker.Make(int64(seq), int64(seq%fixorder.MaxSeqNum), at, at)
		if s.fix != nil {
			payload = s.fix(seq)
		}
		var o order.Order
		if err := order.Parse(payload, &o); err != nil {
			panic(err)
		}
		e.Fields = o.Fields
	}
	e.Epoch, e.Size = s.epoch, uint32(order.HeaderSize+len(payload))
	raw := make([]byte, order.HeaderSize, e.Size)
	e.Put(raw)
	raw = append(raw, payload...)
	if _, err := order.DecodeEntry(raw, &e); err != nil {
		panic(err)
	}
	s.at.Seq, s.at.Hash = seq, order.Hash(raw)
	return client.LogEntry{Entry: e, Bytes: raw}
}

// want is what the table must have of an entry.
func want(e *client.LogEntry, lineage uint32) string {
	f, payload := &e.Fields, order.Payload(e.Bytes)
	text := func(off uint16, n uint8) string { return string(payload[off : int(off)+int(n)]) }
	return fmt.Sprintf("%d %d %d %016x %d %s %s %s %c %x", e.Seq, e.Epoch, lineage, order.Hash(e.Bytes), e.TimeNs/1000, text(f.ClOrdIDOff, f.ClOrdIDLen), text(f.SymbolOff, f.SymbolLen),
		text(f.AccountOff, f.AccountLen), f.Side, payload)
}

const stored = `SELECT concat_ws(' ', seq, epoch, lineage, lpad(to_hex(hash), 16, '0'), (extract(epoch from received) * 1000000)::bigint, cl_ord_id, symbol, account, side, encode(payload, 'hex'))
FROM ordergrid.orders WHERE grid = 'trades' AND "partition" = 0 ORDER BY seq`

// prove compares every row with the log up to a position, and runs the queries of the page.
func prove(t testing.TB, p *downstream.Postgres, through uint64) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, p.Admin())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, stored)
	if err != nil {
		t.Fatal(err)
	}
	s, orders := newSource(), 0
	for rows.Next() {
		var got string
		if err := rows.Scan(&got); err != nil {
			t.Fatal(err)
		}
		e := s.entry()
		for e.Kind != order.KindOrder {
			e = s.entry()
		}
		if w := want(&e, s.at.Lineage); got != w {
			t.Fatalf("order %d of the table is\n%.200s, the log's\n%.200s", orders, got, w)
		}
		orders++
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	s.skip(through)
	var first, last, entries, count int64
	var dense, once bool
	if err := conn.QueryRow(ctx, pageSQL(t, "dense")).Scan(&first, &last, &entries, &dense, &once); err != nil {
		t.Fatal(err)
	}
	if first != 1 || last != int64(through) || entries != last || !dense || !once {
		t.Fatalf("the tables have entries %d to %d, %d in all, dense: %t, each once: %t; the log ends with %d", first, last, entries, dense, once, through)
	}
	var seq, hash, lineage, epoch int64
	if err := conn.QueryRow(ctx, "SELECT seq, hash, lineage, epoch, orders FROM ordergrid.fence").Scan(&seq, &hash, &lineage, &epoch, &count); err != nil {
		t.Fatal(err)
	}
	if uint64(seq) != through || uint64(hash) != s.at.Hash || lineage != int64(s.at.Lineage) || epoch != int64(s.epoch) || int(count) != orders {
		t.Fatalf("the fence is at %d %016x lineage %d epoch %d with %d orders, the log at %d %016x lineage %d epoch %d with %d", seq, uint64(hash), lineage, epoch, count, s.at.Seq, s.at.Hash, s.at.Lineage, s.epoch, orders)
	}
}
