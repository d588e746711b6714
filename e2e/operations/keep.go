package operations

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/internal/numtext"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
	"github.com/ordergrid/ordergrid/probe/drill/history"
	"github.com/ordergrid/ordergrid/probe/drill/validate"
)

// Files of an operation's directory, beside those of the certificate.
const (
	SVGFile = "p99.svg"
	PNGFile = "p99.png"
	RowFile = "row.md"
)

// moment is what latencies are put together by.
const moment = time.Second

// Header of the table that Rows are of.
const Header = `| operation | orders | failed | lost | twice | p99 before | during | after | longest gap | took |
|---|---|---|---|---|---|---|---|---|---|
`

// Keep judges the history in dir again, without a cluster, and writes plot and rows beside it.
func Keep(dir string) (*certificate.Certificate, error) {
	k, err := certificate.Verify(dir)
	if err != nil {
		return nil, err
	}
	if len(k.Trouble) > 0 {
		return nil, fmt.Errorf("%s is not what was certified: %s", dir, strings.Join(k.Trouble, "; "))
	}
	h, err := history.Load(filepath.Join(dir, certificate.HistoryFile))
	if err != nil {
		return nil, err
	}
	name := filepath.Base(dir)
	c := CourseOf(h, strings.ReplaceAll(name, "-", " "), moment)
	d := Draw(c).Titled(c.Title, fmt.Sprintf("%s orders/s, %d copies, %s, history sha256 %.16s", numtext.Thousands(float64(h.Rate)), h.Replicas, h.Started.UTC().Format(time.DateTime), k.Certificate.HistorySHA256))
	if err := write(filepath.Join(dir, SVGFile), d.SVG); err != nil {
		return nil, err
	}
	if err := write(filepath.Join(dir, PNGFile), func(w io.Writer) error { return d.PNG(w, 2) }); err != nil {
		return nil, err
	}
	return k.Certificate, os.WriteFile(filepath.Join(dir, RowFile), []byte(Rows(k.Certificate)), 0o644)
}

// Rows of the table, one for each thing that was done. Latencies are milliseconds.
func Rows(c *certificate.Certificate) string {
	var b strings.Builder
	whole := fmt.Sprintf("%s | %d | %d | %d", numtext.Thousands(float64(c.Orders.Created)), c.Orders.Created-c.Orders.Acknowledged, c.Ledger.Lost, c.Ledger.Duplicated)
	for i := range c.Steps {
		s := &c.Steps[i]
		done := s.Fault
		if strings.HasSuffix(c.Drill, "/"+done) { // it has no name of its own
			done += ": " + s.What
		}
		fmt.Fprintf(&b, "| %s | %s | %s ms | %s ms | %s ms | %s ms | %.1f s |\n", done, whole, validate.Millis(s.Before.P99), validate.Millis(s.During.P99),
			validate.Millis(s.After.P99), validate.Millis(s.Outage), s.Lasted.Seconds())
	}
	return b.String()
}

func write(path string, draw func(io.Writer) error) error {
	var b bytes.Buffer
	if err := draw(&b); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}
