package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/client"
	orderview "github.com/ordergrid/ordergrid/grid-node/view"
)

// formatCSV is of answers.
const formatCSV = "csv"

var answerFormats = []string{formatTable, formatJSON, formatCSV}

// write prints an answer.
func (a *asker) write(answer *client.Answer) error {
	switch a.flags.output {
	case formatJSON:
		return a.json(answer)
	case formatCSV:
		return a.csv(answer)
	}
	var t table
	var head []any
	for _, name := range a.st.Names {
		head = append(head, strings.ToUpper(name))
	}
	t.row(head...)
	for _, row := range answer.Rows {
		var cells []any
		for _, v := range a.st.Row(row) {
			text := printed(valueText(v))
			if v.Kind == orderview.Null {
				text = "-"
			}
			cells = append(cells, text)
		}
		t.row(cells...)
	}
	if err := t.write(a.out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.notes, "%d rows, %d looked at; %s\n", len(answer.Rows), answer.Scanned, cutsText(answer.Cuts))
	return err
}

// cutsText names the prefix of each log that an answer is about.
func cutsText(cuts []client.Cut) string {
	const few = 4
	var b strings.Builder
	for i, c := range cuts {
		if i == few {
			fmt.Fprintf(&b, ", and %d more partitions", len(cuts)-few)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s up to %d", c.Partition, c.Seq)
	}
	return b.String()
}

// printed keeps a value on its line and off the terminal's controls.
func printed(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

// valueText is a value without quotes; "" of an absent one.
func valueText(v orderview.Value) string {
	switch v.Kind {
	case orderview.Null:
		return ""
	case orderview.Text:
		return v.Text
	}
	return v.String()
}

func (a *asker) csv(answer *client.Answer) error {
	w := csv.NewWriter(a.out)
	_ = w.Write(a.st.Names) // Error tells
	for _, row := range answer.Rows {
		var cells []string
		for _, v := range a.st.Row(row) {
			cells = append(cells, valueText(v))
		}
		_ = w.Write(cells)
	}
	w.Flush()
	return w.Error()
}

// json writes one object a row, its members in the order of the statement. Decimals keep every digit.
func (a *asker) json(answer *client.Answer) error {
	var b strings.Builder
	for _, row := range answer.Rows {
		b.Reset()
		for i, v := range a.st.Row(row) {
			name, err := json.Marshal(a.st.Names[i])
			if err != nil {
				return err
			}
			value, err := json.Marshal(jsonValue(v))
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%c%s:%s", "{,"[min(i, 1)], name, value)
		}
		if _, err := fmt.Fprintf(a.out, "%s}\n", b.String()); err != nil {
			return err
		}
	}
	return nil
}

func jsonValue(v orderview.Value) any {
	switch v.Kind {
	case orderview.Null:
		return nil
	case orderview.Decimal:
		return json.Number(v.Number.String())
	case orderview.Int:
		return v.Int
	case orderview.Time:
		return time.Unix(0, v.Int).UTC().Format(time.RFC3339Nano)
	}
	return v.Text
}
