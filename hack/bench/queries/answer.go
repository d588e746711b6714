package queries

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Answer is what a question is answered with: how many rows, and the sum of the hashes of their texts (FNV-1a, 64 bits), in
// whatever order they come.
type Answer struct {
	Rows int
	Sum  uint64
}

func (a Answer) String() string { return fmt.Sprintf("%d rows, sum %016x", a.Rows, a.Sum) }

// add adds a row whose text is the fields, divided by "|".
func (a *Answer) add(fields ...string) { a.addText(strings.Join(fields, "|")) }

func (a *Answer) addText(row string) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(row)) // it never fails
	a.Rows, a.Sum = a.Rows+1, a.Sum+h.Sum64()
}

// addOrder adds the nine fields of an order.
func (a *Answer) addOrder(x *Order) {
	a.add(x.ID, x.Account, x.Symbol, x.Side, strconv.FormatInt(x.Cents, 10), strconv.FormatInt(x.Qty, 10), x.OrdType, x.TIF, strconv.FormatInt(x.Ms, 10))
}

// addCells adds the nine columns of an order as SQL writes them.
func (a *Answer) addCells(cells []string) error {
	if len(cells) != len(columns) {
		return fmt.Errorf("a row has %d columns, must have %d", len(cells), len(columns))
	}
	cells = append([]string(nil), cells...)
	price, ok := new(big.Rat).SetString(cells[4])
	if !ok {
		return fmt.Errorf("price %q is no number", cells[4])
	}
	price.Mul(price, big.NewRat(100, 1))
	at, err := time.Parse("2006-01-02 15:04:05.999999999-07", cells[8])
	if err != nil {
		return err
	}
	cells[4], cells[8] = price.RatString(), strconv.FormatInt(at.UnixMilli(), 10)
	a.add(cells...)
	return nil
}

// addFIX adds an order by its message.
func (a *Answer) addFIX(fix []byte) error {
	field := func(tag string) string {
		_, rest, _ := bytes.Cut(fix, []byte("\x01"+tag+"="))
		value, _, _ := bytes.Cut(rest, []byte{1})
		return string(value)
	}
	at, err := time.Parse("20060102-15:04:05.000", field("60"))
	if err != nil {
		return err
	}
	return a.addCells([]string{field("11"), field("1"), field("55"), field("54"), field("44"), field("38"), field("40"), field("59"), at.Format("2006-01-02 15:04:05.999999999-07")})
}

// counted is the answer to a count.
func counted(n int64) (a Answer) {
	a.add(strconv.FormatInt(n, 10))
	return a
}

// Took is one answer, and how long it took.
type Took struct {
	time.Duration
	Answer
}

// repeat asks n times, from number first on. What ask returns reads the answer, which is not timed.
func repeat(first, n int, ask func(i int) (func() (Answer, error), error)) ([]Took, error) {
	all := make([]Took, 0, n)
	for i := first; i < first+n; i++ {
		begun := time.Now()
		read, err := ask(i)
		took := time.Since(begun)
		if err != nil {
			return nil, err
		}
		a, err := read()
		if err != nil {
			return nil, err
		}
		all = append(all, Took{took, a})
	}
	return all, nil
}
