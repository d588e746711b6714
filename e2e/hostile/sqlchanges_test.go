package hostile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// changers are SQL clients of an order-gateway that change what they may as fast as they can.
var changers = []neighbour{
	{name: "100 put values of 16 KiB by SQL, one after the other", conns: 100, talk: putsBySQL, seen: "ordergrid_node_region_operations_total"},
	{name: "100 send 10,000 changes by SQL and read no answer", conns: 100, talk: putsUnread, seen: "ordergrid_node_region_operations_total"},
	{name: "100 send 10,000 changes by SQL and read no answer, and reconnect", conns: 100, talk: putsUnread, stay: 300 * time.Millisecond, seen: "ordergrid_node_region_operations_total"},
}

const putText = "insert into regions.positions values ('%s', '%s') on conflict (key) do update set value = excluded.value"

// putsBySQL has a session of its own, and waits for each answer.
func putsBySQL(c net.Conn) {
	user := fmt.Sprint("u", rand.Uint32()) // a user may have 50 connections
	cfg, err := pgx.ParseConfig(fmt.Sprintf("postgres://%s@%s/grid?sslmode=disable&default_query_exec_mode=simple_protocol", user, c.RemoteAddr()))
	if err != nil {
		panic(err)
	}
	cfg.DialFunc = func(context.Context, string, string) (net.Conn, error) { return c, nil }
	db, err := pgx.ConnectConfig(context.Background(), cfg)
	if err != nil {
		return
	}
	value := strings.Repeat("x", 16<<10)
	for err == nil {
		_, err = db.Exec(context.Background(), fmt.Sprintf(putText, user, value))
	}
}

// putsUnread sends its changes in one piece.
func putsUnread(c net.Conn) {
	user := fmt.Sprint("u", rand.Uint32())
	hello := binary.BigEndian.AppendUint32(nil, 3<<16) // version 3.0
	hello = append(hello, "user\x00"+user+"\x00database\x00grid\x00\x00"...)
	b := append(binary.BigEndian.AppendUint32(nil, uint32(4+len(hello))), hello...)
	query := fmt.Appendf(nil, putText+"\x00", user, strings.Repeat("x", 200))
	query = append(binary.BigEndian.AppendUint32([]byte{'Q'}, uint32(4+len(query))), query...)
	_, _ = c.Write(append(b, bytes.Repeat(query, 10_000)...))
}

// openSQL starts an order-gateway for SQL before a grid, and returns its address.
func openSQL(t *testing.T, g *testgrid.Grid) string {
	t.Helper()
	addr := proc.PortForTest(t)
	downstream.Run(t, "order-gateway", "--http", proc.PortForTest(t), "--postgresql", addr, "--postgresql-insecure-plain", "--postgresql-insecure-writes",
		"--endpoint", strings.Join(g.Endpoints, ","))
	downstream.WaitFor(t, "order-gateway", func() bool {
		db, err := pgx.Connect(t.Context(), fmt.Sprintf("postgres://desk@%s/grid?sslmode=disable", addr))
		if err != nil {
			return false
		}
		_ = db.Close(t.Context())
		return true
	})
	return addr
}

// What such clients do to orders is as with other neighbours; and another client changes an object and reads it back beside
// them, at most after another attempt, each change once.
func TestChangersDenyNothing(t *testing.T) {
	exe := program(t)
	args := []string{"--", "--regions=" + fileOf(t, "regions.yaml", "memory: 64Mi\nregions: [{name: positions}]\n")}
	for _, n := range changers {
		t.Run(n.name, func(t *testing.T) {
			g, other := start(t, exe, args...), start(t, exe, args...)
			doors := map[*testgrid.Grid]string{g: openSQL(t, g), other: openSQL(t, other)}
			n.door = func(g *testgrid.Grid) []string { return []string{doors[g]} }
			stop, changed := make(chan struct{}), make(chan int)
			go func() { changed <- changes(t, doors[g], stop) }()
			n.beside(t, g, other)
			close(stop)
			made := <-changed
			operations := total(t, g, n.seen) // two of each change of the other client: it is read back
			t.Logf("%d changes of another client were made, %.0f operations in all", made, operations)
			if made == 0 || operations < float64(5*made) {
				t.Errorf("%d changes of another client, %v operations in all: want some, and many more of the neighbours", made, operations)
			}
		})
	}
}

// changes counts an object up until stop is closed, and returns how far.
func changes(t *testing.T, addr string, stop <-chan struct{}) (n int) {
	db, err := pgx.Connect(t.Context(), fmt.Sprintf("postgres://desk@%s/grid?sslmode=disable&default_query_exec_mode=simple_protocol", addr))
	if err != nil {
		t.Error(err)
		return 0
	}
	defer func() { _ = db.Close(context.Background()) }()
	for {
		select {
		case <-stop:
			return n
		case <-time.After(20 * time.Millisecond):
		}
		if _, err := db.Exec(t.Context(), fmt.Sprintf(putText, "desk", fmt.Sprint(n+1))); err != nil {
			t.Errorf("after %d changes: %v", n, err)
			return n
		}
		n++
		var value string
		if err := db.QueryRow(t.Context(), "select value from regions.positions where key = 'desk'").Scan(&value); err != nil || value != fmt.Sprint(n) {
			t.Errorf("after %d changes: value %q, %v", n, value, err)
			return n
		}
	}
}
