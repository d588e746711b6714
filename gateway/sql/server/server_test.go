package server

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/ordergrid/ordergrid/internal/pki"
)

// One grid for all: each part has a listener of its own.
func TestListener(t *testing.T) {
	g := newGrid(t)
	t.Run("who may ask", g.whoMayAsk)
	t.Run("bounds", g.bounds)
	t.Run("protocol", g.protocol)
	t.Run("pipelines", g.pipelined)
	t.Run("portals", g.portals)
	t.Run("regions", g.regions)
	t.Run("portals of regions", g.regionPortals)
	t.Run("who may read regions", g.whoMayReadRegions)
	t.Run("changes", g.changes)
	t.Run("changes are alone", g.changesAlone)
	t.Run("changes are bounded", g.changesBounded)
	t.Run("changes that are prepared", g.changesPrepared)
	t.Run("who may change", g.whoMayChange)
	t.Run("cancel", g.cancel)
	t.Run("clients that do not go on", g.silent)
}

func (g *grid) whoMayAsk(t *testing.T) {
	s := g.closed(t)
	stranger := &grid{dir: t.TempDir(), files: map[string]pki.Files{}}
	stranger.save(t, authority(t), "reader", pki.Identity{User: "reader", ClientOnly: true})
	for _, c := range []struct{ name, dsn, certificate, want string }{
		{"without TLS", "user=pat sslmode=disable password=secret", "", "28000"},
		{"a password", "user=pat sslmode=require password='secret of pat'", "", ""},
		{"another one", "user=pat sslmode=require password='secret of sam'", "", "28P01"},
		{"of a user without the permission", "user=sam sslmode=require password='secret of sam'", "", "42501"},
		{"a token", "user=any sslmode=require password=token-of-reader", "", ""},
		{"the same again", "user=any sslmode=require password=token-of-reader", "", ""},
		{"a token without the permission", "user=any sslmode=require password=token-of-trader", "", "42501"},
		{"no token", "user=any sslmode=require password=guess", "", "28P01"},
		{"a certificate", "user=reader sslmode=require", "reader", ""},
		{"of another user", "user=loader sslmode=require", "reader", "28000"},
		{"without the permission", "user=trader sslmode=require", "trader", "42501"},
	} {
		conn, err := connect(t, s, c.dsn)
		if c.certificate != "" {
			conn, err = connect(t, s, c.dsn, withCertificate(t, g.files[c.certificate]))
		}
		if code(err) != c.want {
			t.Errorf("%s: %v, expected SQLSTATE %q", c.name, err, c.want)
		}
		if err != nil {
			if strings.Contains(err.Error(), "secret of") {
				t.Errorf("%s: the error has a password in it: %v", c.name, err)
			}
			continue
		}
		if rows, err := rowsOf(t, conn, "set ordergrid.linearizable to on; select count(*) from orders"); err != nil || string(rows[0][0]) != "1500" {
			t.Errorf("%s: %s, %v", c.name, rows, err)
		}
	}
	if _, err := connect(t, s, "user=reader sslmode=require", withCertificate(t, stranger.files["reader"])); err == nil {
		t.Error("a certificate of another authority is accepted")
	}
	// Who loses the permission is refused from the next statement on.
	c, err := connect(t, s, "user=pat sslmode=require password='secret of pat'")
	if err != nil {
		t.Fatal(err)
	}
	had := g.rules
	g.rules = nil
	_, err = rowsOf(t, c, "select 1 from orders")
	g.rules = had
	if code(err) != "42501" {
		t.Errorf("a user that lost the permission: %v", err)
	}
}

func (g *grid) bounds(t *testing.T) {
	s := g.open(t, Limits{Statements: 3, Portals: 2, PerUser: 2, Connections: 3, Kept: 100_000})
	c := mustConnect(t, s)
	if _, err := rowsOf(t, c, "select '"+strings.Repeat("x", 1<<20)+"'"); code(err) != "54000" {
		t.Errorf("a statement of 1 MB: %v", err)
	}
	if _, err := rowsOf(t, c, "select seq from orders where seq = 1"+strings.Repeat(" or seq>1", 6000)); code(err) != "54001" {
		t.Errorf("6,000 ranges: %v", err)
	}
	if _, err := rowsOf(t, c, "select 1"); err != nil {
		t.Errorf("the connection does not go on: %v", err)
	}
	ctx := t.Context()
	for i, name := range []string{"a", "b", "c", "d"} {
		_, err := c.Prepare(ctx, name, "select 1", nil)
		if want := map[bool]string{true: "53400"}[i == 3]; code(err) != want {
			t.Errorf("statement %d: %v", i+1, err)
		}
	}
	other := mustConnect(t, g.open(t, Limits{Kept: 100_000}))
	for name, want := range map[string]string{strings.Repeat("n", 100_000): "53400", strings.Repeat("n", 90_000): ""} {
		if _, err := other.Prepare(ctx, name, "select 1", nil); code(err) != want {
			t.Errorf("a statement with a name of %d bytes: %v", len(name), err)
		}
	}
	if _, err := c.Prepare(ctx, "b", "select 1", nil); code(err) != "42P05" && code(err) != "53400" {
		t.Errorf("a name that is taken: %v", err)
	}
	_ = mustConnect(t, s)
	if _, err := connect(t, s, "user=desk sslmode=disable"); code(err) != "53300" {
		t.Errorf("a third connection of a user: %v", err)
	}
	_, err := connect(t, s, "user=other sslmode=disable")
	for end := time.Now().Add(10 * time.Second); code(err) == "53300" && time.Now().Before(end); { // the refused one is open until it is closed here, too
		time.Sleep(5 * time.Millisecond)
		_, err = connect(t, s, "user=other sslmode=disable")
	}
	if err != nil {
		t.Errorf("another user: %v", err)
	}
	if _, err := connect(t, s, "user=third sslmode=disable"); code(err) != "53300" {
		t.Errorf("one connection more than there may be: %v", err)
	}
	if _, err := rowsOf(t, c, "select '"+strings.Repeat("x", 3<<20)+"'"); err == nil || !c.IsClosed() {
		t.Errorf("a message of 3 MB: %v", err)
	}
}

func (g *grid) protocol(t *testing.T) {
	c := mustConnect(t, g.open(t, Limits{}))
	for _, step := range []struct{ statement, want string }{
		{"select 1; select nothing; select 2", "42703"},
		{"begin", ""}, {"select nothing", "42601"}, {"select 1", "25P02"}, {"savepoint a", "25P02"}, {"rollback", ""}, {"select 1", ""},
		{"begin; savepoint a", ""}, {"select x from orders", "42703"}, {"rollback to a", ""}, {"select 1", ""}, {"commit", ""},
		{"set timezone to 'Mars/Olympus'", "22023"}, {"set client_encoding to 'LATIN1'", "22023"}, {"set nothing to 1", "42704"},
		{"set default_transaction_read_only to off", "22023"}, {"set statement_timeout to '5s'", ""}, {"show nothing", "42704"},
		{"delete from orders", "25006"}, {"", ""}, {";;", ""}, {"declare c cursor for select 1", "0A000"},
	} {
		want := step.want
		if step.statement == "select nothing" {
			want = "42703"
		}
		if _, err := rowsOf(t, c, step.statement); code(err) != want {
			t.Errorf("%s: %v, expected %q", step.statement, err, want)
		}
	}
	if got := c.TxStatus(); got != 'I' {
		t.Errorf("the transaction is %c", got)
	}
	rows, err := rowsOf(t, c, "set time zone 'Asia/Kolkata'; select timestamptz '2026-11-21 00:00:00.5+00', timestamptz '2026-11-21'::text")
	if err != nil || string(rows[0][0]) != "2026-11-21 05:30:00.5+05:30" || string(rows[0][1]) != "2026-11-21 00:00:00+05:30" {
		t.Errorf("%s %v", rows, err)
	}
	if got := c.ParameterStatus("TimeZone"); got != "Asia/Kolkata" {
		t.Errorf("the client is told of time zone %q", got)
	}
	if rows, err = rowsOf(t, c, "explain select seq from orders where clordid = 'C000007'"); err != nil || !strings.Contains(string(rows[2][0])+string(rows[1][0]), "index") && !strings.Contains(string(rows[2][0]), "rows") {
		t.Errorf("explain: %s %v", rows, err)
	}
	tag, err := c.Exec(t.Context(), "select clordid from orders order by clordid offset 1490").ReadAll()
	if err != nil || tag[0].CommandTag.String() != "SELECT 10" {
		t.Errorf("%v %v", tag, err)
	}
}

// front is the protocol by hand.
func front(t *testing.T, s *Server) (*pgproto3.Frontend, net.Conn) {
	t.Helper()
	nc, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	f := pgproto3.NewFrontend(nc, nc)
	f.Send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": "desk"}})
	if got := exchange1(t, f); !strings.HasSuffix(got, "Z") {
		t.Fatalf("startup: %s", got)
	}
	return f, nc
}

// pipelined: the answers of a pipeline are sent before it ends, so that the listener does not keep them.
func (g *grid) pipelined(t *testing.T) {
	f, _ := front(t, g.open(t, Limits{}))
	for range 2*maxUnsent + 1 {
		f.Send(&pgproto3.Describe{ObjectType: 'S'})
	}
	f.Send(&pgproto3.Sync{})
	if got := exchange1(t, f); got != "(26000)Z" {
		t.Errorf("behind an error: %s", got)
	}
	for range 2*maxUnsent + 1 {
		f.Send(&pgproto3.Close{ObjectType: 'S', Name: "none"})
	}
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	for n := range 2 * maxUnsent {
		if m, err := f.Receive(); err != nil {
			t.Fatalf("after %d answers, without Sync: %v", n, err)
		} else if _, ok := m.(*pgproto3.CloseComplete); !ok {
			t.Fatalf("answer %d is %T", n, m)
		}
	}
	f.Send(&pgproto3.Sync{})
	if got := exchange1(t, f); got != "3Z" {
		t.Errorf("what was not sent before Sync: %s", got)
	}
}

// exchange1 sends, and returns what comes up to ReadyForQuery, a letter each.
func exchange1(t *testing.T, f *pgproto3.Frontend) string {
	t.Helper()
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for {
		m, err := f.Receive()
		if err != nil {
			t.Fatalf("after %s: %v", b.String(), err)
		}
		switch m := m.(type) {
		case *pgproto3.ErrorResponse:
			b.WriteString("(" + m.Code + ")")
		case *pgproto3.DataRow:
			b.WriteByte('d')
		case *pgproto3.PortalSuspended:
			b.WriteByte('s')
		case *pgproto3.CommandComplete:
			b.WriteString("[" + string(m.CommandTag) + "]")
		case *pgproto3.ParseComplete:
			b.WriteByte('1')
		case *pgproto3.BindComplete:
			b.WriteByte('2')
		case *pgproto3.CloseComplete:
			b.WriteByte('3')
		case *pgproto3.RowDescription:
			b.WriteByte('T')
		case *pgproto3.ParameterDescription:
			b.WriteByte('t')
		case *pgproto3.ReadyForQuery:
			return b.String() + "Z"
		}
	}
}

func (g *grid) portals(t *testing.T) {
	f, _ := front(t, g.open(t, Limits{Portals: 3}))
	const rows = "select seq from orders order by clordid limit 5"
	send := func(want string, messages ...pgproto3.FrontendMessage) {
		t.Helper()
		for _, m := range messages {
			f.Send(m)
		}
		f.Send(&pgproto3.Sync{})
		if got := exchange1(t, f); got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
	send("12TddsZ", &pgproto3.Parse{Query: rows}, &pgproto3.Bind{DestinationPortal: "p"}, &pgproto3.Describe{ObjectType: 'P', Name: "p"}, &pgproto3.Execute{Portal: "p", MaxRows: 2})
	send("(34000)Z", &pgproto3.Execute{Portal: "p"}) // it ended with the transaction
	send("12[BEGIN]12ddsZ", &pgproto3.Parse{Query: "begin"}, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Parse{Query: rows}, &pgproto3.Bind{DestinationPortal: "p"}, &pgproto3.Execute{Portal: "p", MaxRows: 2})
	send("ddsd[SELECT 1]Z", &pgproto3.Execute{Portal: "p", MaxRows: 2}, &pgproto3.Execute{Portal: "p", MaxRows: 2})
	send("2(53400)Z", &pgproto3.Bind{DestinationPortal: "q"}, &pgproto3.Bind{DestinationPortal: "r"})
	send("(25P02)Z", &pgproto3.Parse{Query: "select 1"}, &pgproto3.Execute{}, &pgproto3.Describe{ObjectType: 'S', Name: "nothing"})
	send("12[ROLLBACK]Z", &pgproto3.Parse{Query: "commit"}, &pgproto3.Bind{}, &pgproto3.Execute{})
	send("1tT2d[SELECT 1]3Z", &pgproto3.Parse{Name: "s", Query: "select price from orders where clordid = $1 and price > $2"}, &pgproto3.Describe{ObjectType: 'S', Name: "s"},
		&pgproto3.Bind{PreparedStatement: "s", Parameters: [][]byte{[]byte("C000007"), []byte("1.5")}, ResultFormatCodes: []int16{1}}, &pgproto3.Execute{}, &pgproto3.Close{ObjectType: 'S', Name: "s"})
	send("(26000)Z", &pgproto3.Bind{PreparedStatement: "s"})
	send("1(08P01)Z", &pgproto3.Parse{Query: "select $1::int8"}, &pgproto3.Bind{})
	send("1(22P02)Z", &pgproto3.Parse{Query: "select $1::int8"}, &pgproto3.Bind{Parameters: [][]byte{[]byte("x")}})
	send("1(22P03)Z", &pgproto3.Parse{Query: "select $1::int8"}, &pgproto3.Bind{Parameters: [][]byte{{1}}, ParameterFormatCodes: []int16{1}})
	send("(42601)Z", &pgproto3.Parse{Query: "select 1; select 2"})
}

// wide is an answer that no socket's buffer holds.
var wide = "select " + strings.Repeat("*,", 99) + "* from orders"

func (g *grid) cancel(t *testing.T) {
	s := g.open(t, Limits{})
	c := mustConnect(t, s)
	ctx := t.Context()
	r := c.Exec(ctx, wide) // it is not read yet
	time.Sleep(200 * time.Millisecond)
	if err := c.CancelRequest(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadAll(); code(err) != "57014" {
		t.Errorf("a cancelled statement: %v", err)
	}
	if _, err := rowsOf(t, c, "select 1"); err != nil {
		t.Errorf("the connection does not go on: %v", err)
	}
	if _, err := rowsOf(t, c, "set statement_timeout to '1ms'; "+wide); code(err) != "57014" || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("a statement of more than 1 ms: %v", err)
	}
	// The secret of another connection cancels nothing.
	other := mustConnect(t, s)
	r = other.Exec(ctx, "select count(*) from orders")
	s.cancel(other.PID(), []byte{1, 2, 3, 4})
	if _, err := r.ReadAll(); err != nil {
		t.Errorf("cancelled by a wrong secret: %v", err)
	}
}

func (g *grid) silent(t *testing.T) {
	s := g.open(t, Limits{Write: 300 * time.Millisecond, Idle: 400 * time.Millisecond, Startup: 300 * time.Millisecond})
	for _, c := range []struct {
		name string
		send []byte
	}{
		{"nothing", nil}, {"a part of a startup packet", []byte{0, 0, 0, 50, 0, 3}}, {"GET / HTTP/1.1", []byte("GET / HTTP/1.1\r\n\r\n")},
		{"TLS that is not there, and nothing", []byte{0, 0, 0, 8, 4, 210, 22, 47}}, {"a startup packet of 2 GB", []byte{0x7f, 0, 0, 0, 0, 3, 0, 0, 0}},
	} {
		nc, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = nc.Write(c.send)
		_ = nc.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, nc); err != nil {
			var n net.Error
			if e, ok := err.(net.Error); ok {
				n = e
			}
			if n != nil && n.Timeout() {
				t.Errorf("%s: the connection is not closed", c.name)
			}
		}
		_ = nc.Close()
	}
	c := mustConnect(t, s)
	if _, err := rowsOf(t, c, "select 1"); err != nil {
		t.Fatal(err)
	}
	f, nc := front(t, s)
	if m, err := f.Receive(); err != nil {
		t.Errorf("an idle connection: %v", err)
	} else if e, ok := m.(*pgproto3.ErrorResponse); !ok || e.Code != "57P05" {
		t.Errorf("an idle connection: %v", m)
	}
	_ = nc.Close()
	f, _ = front(t, s)
	f.Send(&pgproto3.Query{String: wide})
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for s.Stats().Connections > 0 {
		select {
		case <-ctx.Done():
			t.Fatalf("%d connections are left of clients that do not read", s.Stats().Connections)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
