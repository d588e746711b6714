package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// message is a FIX order with these quantity and price; a value may be empty: the field is left out.
func message(seq uint64, quantity, price string) []byte {
	body := fmt.Sprintf("35=D\x0149=A\x0156=B\x0134=%d\x0152=20261120-10:00:00\x0111=%d\x0155=SYM\x0154=1\x0160=20261120-10:00:00\x0138=%s\x0140=", seq, seq, quantity)
	if price == "" {
		body += "1\x01"
	} else {
		body += "2\x0144=" + price + "\x01"
	}
	m := []byte(fmt.Sprintf("8=%s\x019=%d\x01%s10=000\x01", []string{"FIX.4.4", "FIXT.1.1"}[seq/7%2], len(body), body))
	order.Seal(m)
	return m
}

// TestNumbers: quantity and price are stored as the server reads their text, trailing zeros included.
func TestNumbers(t *testing.T) {
	p, o := migrated(t)
	numbers := []string{"1", "10", "100", "9999", "10000", "10001", "123456789", "99999999999999999999", "0.1", "0.5", ".5", "5.", "0.0001", "0.00001", "0.000000000000000001",
		"1.10", "12345.678900", "10000.0001", "100000000.00000001", "0007", "00012345.5", "1000000000000000.000", "33.333333333333333333"[:20]}
	prices := append([]string{"", "0", "0.00", "-0", "-1.25", "-.5", "-10000", "-0.00010"}, numbers...)
	s := newSource()
	at := func(list []string, seq uint64) string { return list[seq%uint64(len(list))] }
	s.fix = func(seq uint64) []byte { return message(seq, at(numbers, seq), at(prices, seq)) }
	w := open(t, o)
	if err := w.Write(t.Context(), s.next(400)); err != nil {
		t.Fatal(err)
	}
	out, err := p.PSQL(t.Context(), "SELECT seq, quantity, coalesce(price::text, '-'), account IS NULL FROM ordergrid.orders ORDER BY seq")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out, "\n")
	if len(lines) != 398 {
		t.Fatalf("%d rows, want 398", len(lines))
	}
	var expected strings.Builder
	for i, line := range lines {
		var seq uint64
		if _, err := fmt.Sscanf(line, "%d|", &seq); err != nil {
			t.Fatal(err)
		}
		price := "'-'"
		if v := at(prices, seq); v != "" {
			price = "('" + v + "'::numeric)::text"
		}
		if i > 0 {
			expected.WriteString(" UNION ALL ")
		}
		fmt.Fprintf(&expected, "SELECT %d, '%s'::numeric, %s, true", seq, at(numbers, seq), price)
	}
	want, err := p.PSQL(t.Context(), expected.String())
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(want, "\n") {
		if lines[i] != line {
			t.Errorf("stored %s, the server reads %s", lines[i], line)
		}
	}
}

// TestDays: an order before 1970 has a table, times in a hundred days do not make a hundred tables, and a day whose
// orders are in the default partition goes on there.
func TestDays(t *testing.T) {
	p, o := migrated(t)
	w, s := open(t, o), newSource()
	b := s.next(200)
	for i := range b.Entries {
		e := &b.Entries[i]
		e.TimeNs = (int64(i) - 20) * 24 * 3600 * 1e9
		if i == 150 {
			e.TimeNs = -1
		}
	}
	if err := w.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	const left = "SELECT count(*) FROM ordergrid.orders_default"
	if n, err := p.PSQL(t.Context(), left); n != "190" || err != nil {
		t.Errorf("%s orders in the default partition (%v), want 190: 8 days of one batch got a table", n, err)
	}
	if at, err := p.PSQL(t.Context(), "SELECT seq, received FROM ordergrid.orders WHERE seq IN (151) UNION ALL SELECT count(*), min(received) FROM ordergrid.orders_19691214"); at != "151|1969-12-31 23:59:59.999999+00\n1|1969-12-14 00:00:00+00" || err != nil {
		t.Errorf("times: %s (%v)", at, err)
	}
	b = s.next(200)
	for i := range b.Entries {
		b.Entries[i].TimeNs = 100 * 24 * 3600 * 1e9
	}
	if err := w.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if n, err := p.PSQL(t.Context(), left); n != "390" || err != nil {
		t.Errorf("%s orders in the default partition (%v), want 390", n, err)
	}
}
