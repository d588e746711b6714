package link

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ReportFormats are those of a Report.
var ReportFormats = []string{"csv", "json"}

// CheckReportFormat rejects others.
func CheckReportFormat(format string) error {
	if !slices.Contains(ReportFormats, format) {
		return fmt.Errorf("value %.40q, allowed: %s", format, strings.Join(ReportFormats, ", "))
	}
	return nil
}

// Report writes orphans: a line of CSV each, below a heading, or a line of JSON.
type Report struct {
	csv  *csv.Writer
	json *json.Encoder
}

// NewReport begins a report.
func NewReport(w io.Writer, format string) (*Report, error) {
	if err := CheckReportFormat(format); err != nil {
		return nil, err
	}
	if format == "json" {
		return &Report{json: json.NewEncoder(w)}, nil
	}
	r := &Report{csv: csv.NewWriter(w)}
	return r, r.csv.Write([]string{"id", "hash", "epoch", "received", "session", "clientSeq", "clOrdID", "account", "symbol", "side", "quantity", "price", "now"})
}

// Write adds an orphan.
func (r *Report) Write(o Orphan) error {
	if r.json != nil {
		return r.json.Encode(&o)
	}
	return r.csv.Write([]string{o.ID, o.Hash, strconv.FormatUint(uint64(o.Epoch), 10), o.Received.Format(time.RFC3339Nano), strconv.FormatUint(uint64(o.Session), 10),
		strconv.FormatUint(o.ClientSeq, 10), o.ClOrdID, o.Account, o.Symbol, o.Side, o.Quantity, o.Price, o.Now})
}

// Flush writes what is buffered.
func (r *Report) Flush() error {
	if r.csv == nil {
		return nil
	}
	r.csv.Flush()
	return r.csv.Error()
}
