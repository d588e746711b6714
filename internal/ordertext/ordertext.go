// Package ordertext prints a committed order for a user or a script.
package ordertext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/client"
)

// Formats are the values of an --output flag.
var Formats = []string{"text", "json", "fix"}

// CheckFormat refuses any other.
func CheckFormat(flag, value string) error {
	if slices.Contains(Formats, value) {
		return nil
	}
	return fmt.Errorf("%s: value %q, allowed: %s", flag, value, strings.Join(Formats, ", "))
}

// Page writes an order as a block of lines, a name and a value each.
func Page(w io.Writer, o *client.Order) error {
	_, err := fmt.Fprintf(w, `id        %s
epoch     %d
hash      %016x
received  %s
ClOrdID   %s
symbol    %s
account   %s
side      %s
from      %s, which has committed up to %d
FIX       %s
`, o.ID, o.Epoch, o.Hash(), o.Received.UTC().Format(time.RFC3339Nano), o.ClOrdID, o.Symbol, o.Account, side(o.Side), o.From, o.CommitSeq, readable(o.FIX))
	return err
}

// Line writes an order as one line: its time, id, epoch and main fields.
func Line(w io.Writer, o *client.Order) error {
	_, err := fmt.Fprintf(w, "%s  %-12s  epoch %-4d  %-20s  %-6s  %-8s  %s\n", o.Received.UTC().Format("15:04:05.000000"), o.ID, o.Epoch, o.ClOrdID, side(o.Side), o.Symbol, o.Account)
	return err
}

// FIX writes the message byte for byte, and nothing else.
func FIX(w io.Writer, o *client.Order) error {
	_, err := w.Write(o.FIX)
	return err
}

// JSON writes an order as one line of JSON.
func JSON(w io.Writer, o *client.Order) error {
	return json.NewEncoder(w).Encode(struct {
		ID        string `json:"id"`
		Epoch     uint64 `json:"epoch"`
		Hash      string `json:"hash"`     // 16 hex digits, of the log entry
		Received  string `json:"received"` // RFC 3339, nanoseconds
		ClOrdID   string `json:"clOrdID"`
		Symbol    string `json:"symbol,omitempty"`
		Account   string `json:"account,omitempty"`
		Side      string `json:"side,omitempty"` // as in FIX tag 54
		From      string `json:"from,omitempty"`
		CommitSeq uint64 `json:"commitSeq,omitempty"`
		FIX       string `json:"fix"` // fields separated by |
	}{o.ID.String(), o.Epoch, fmt.Sprintf("%016x", o.Hash()), o.Received.UTC().Format(time.RFC3339Nano), o.ClOrdID, o.Symbol, o.Account, tag(o.Side), o.From, o.CommitSeq, string(readable(o.FIX))})
}

func readable(fix []byte) []byte { return bytes.ReplaceAll(fix, []byte{1}, []byte{'|'}) }

func tag(b byte) string {
	if b == 0 {
		return ""
	}
	return string(b)
}

// side is FIX tag 54 in words.
func side(b byte) string {
	switch b {
	case 0:
		return "-"
	case '1':
		return "buy"
	case '2':
		return "sell"
	case '5':
		return "short"
	}
	return "54=" + string(b)
}
