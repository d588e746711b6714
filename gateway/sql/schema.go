package sql

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// TableName of the table of orders, and the schema it is in.
const (
	TableName  = "orders"
	SchemaName = "public"
	TableOid   = 16384 // as the catalog has it
)

// Column of a table.
type Column struct {
	Name    string
	Field   view.Field
	Kind    view.Kind
	NotNull bool
}

// Type is the column's type.
func (c *Column) Type() Type {
	switch c.Kind {
	case view.Int:
		return Int8
	case view.Decimal:
		return Numeric
	case view.Time:
		return Timestamptz
	}
	return Text
}

// Schema is the table's columns.
type Schema struct{ Columns []Column }

// RegionsName is the schema of the tables of regions.
const RegionsName = "regions"

// Fields of an entry of a region: places in its rows, from 1.
const (
	regionKey view.Field = 1 + iota
	regionValue
	regionVersion
	regionExpires
	regionPartition
)

// regionSchema has the columns of every region: its values are bytes, and what is in them it does not know.
var regionSchema = &Schema{Columns: []Column{
	{"key", regionKey, view.Text, true},
	{"value", regionValue, view.Text, true},
	{"version", regionVersion, view.Int, true},
	{"expires", regionExpires, view.Time, false},
	{"partition", regionPartition, view.Int, true},
}}

// standard are the columns of every view. Those that FIX requires of every order are not null.
var standard = []Column{
	{"seq", view.Seq, view.Int, true},
	{"clordid", view.ClOrdID, view.Text, true},
	{"origclordid", view.OrigClOrdID, view.Text, false},
	{"symbol", view.Symbol, view.Text, true},
	{"side", view.Side, view.Text, true},
	{"account", view.Account, view.Text, false},
	{"price", view.Price, view.Decimal, false},
	{"orderqty", view.OrderQty, view.Decimal, false},
	{"ordtype", view.OrdType, view.Text, false},
	{"timeinforce", view.TimeInForce, view.Text, false},
	{"transacttime", view.TransactTime, view.Time, false},
	{"session", view.Session, view.Int, false},
	{"received", view.Received, view.Time, true},
	{"msgtype", view.MsgType, view.Text, true},
	{"state", view.State, view.Text, false},
}

// NewSchema adds the further columns that the grid's nodes keep (--order-index).
func NewSchema(extra []view.Extra) (*Schema, error) {
	s := &Schema{Columns: slices.Clone(standard)}
	for _, x := range extra {
		c := Column{Name: fold(x.Name), Field: view.Field(x.Tag), Kind: x.Kind}
		if c.Name == "" {
			c.Name = fmt.Sprintf("tag%d", x.Tag)
		}
		switch {
		case c.Kind != view.Text && c.Kind != view.Decimal && c.Kind != view.Time:
			return nil, fmt.Errorf("sql: column %s is of kind %s, allowed: text, decimal, time", c.Name, c.Kind)
		case s.column(c.Name) != nil:
			return nil, fmt.Errorf("sql: column %s is there twice, allowed: names that are not those of other columns", c.Name)
		}
		s.Columns = append(s.Columns, c)
	}
	return s, nil
}

func (s *Schema) column(name string) *Column {
	for i := range s.Columns {
		if s.Columns[i].Name == name {
			return &s.Columns[i]
		}
	}
	return nil
}

// characters are the columns whose values are one character.
func (c *Column) character() bool {
	switch c.Field {
	case view.Side, view.OrdType, view.TimeInForce, view.MsgType:
		return true
	}
	return false
}

// possible reports whether the column can have the text.
func (c *Column) possible(s string) bool {
	switch {
	case c.character():
		return len(s) == 1
	case c.Field == view.State:
		return s == view.StateNew || s == view.StateReplaced || s == view.StateCancelled
	}
	return true
}
