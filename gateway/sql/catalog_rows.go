package sql

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// Version is what the listener tells clients that it is: they choose their statements by it.
const (
	ServerVersion = "15.0 (OrderGrid)"
	Version       = "PostgreSQL 15.0 (OrderGrid: orders and regions of a grid)"
)

// rows fills in the templates of a statement's columns for each thing that there is a row for.
func (q *Query) rows(env *Env, groups [][]string) [][]*string {
	out := [][]*string{}
	for _, facts := range q.things(env) {
		if !q.thingWanted(facts, groups) {
			continue
		}
		row := make([]*string, len(q.Columns))
		for i, c := range q.Columns {
			if c[2] != "{null}" {
				s := fill(c[2], facts)
				row[i] = &s
			}
		}
		out = append(out, row)
	}
	return out
}

// thingWanted is for statements that ask for some of the columns, types or settings.
func (q *Query) thingWanted(facts map[string]string, groups [][]string) bool {
	for i, g := range q.Groups {
		switch g.Any {
		case "columnlike":
			if !matchesLike(groups[i][0], facts["column"]) {
				return false
			}
		case "schemalike":
			if !matchesLike(groups[i][0], facts["schema"]) {
				return false
			}
		case "numbers": // of columns, with the table's OID
			if !slices.Contains(groups[i], facts["n"]) {
				return false
			}
		case "typeoid":
			if !slices.Contains(groups[i], facts["typoid"]) {
				return false
			}
		case "typename":
			if !slices.Contains(groups[i], facts["typname"]) && !slices.Contains(groups[i], facts["type"]) {
				return false
			}
		}
	}
	return true
}

func fill(template string, facts map[string]string) string {
	if !strings.Contains(template, "{") {
		return template
	}
	if strings.HasPrefix(template, "{") && strings.HasSuffix(template, "}") {
		if s, ok := facts[template[1:len(template)-1]]; ok {
			return s
		}
	}
	return template
}

// things are the facts of each.
func (q *Query) things(env *Env) []map[string]string {
	base := map[string]string{"schema": SchemaName, "table": TableName, "oid": strconv.Itoa(TableOid), "owner": "ordergrid", "db": env.Database, "user": env.User}
	with := func(more map[string]string) map[string]string {
		for k, v := range base {
			if _, ok := more[k]; !ok {
				more[k] = v
			}
		}
		return more
	}
	var out []map[string]string
	switch q.Rows {
	case "one", "relations", "database":
		out = append(out, base)
	case "columns":
		for i := range q.catalog.schema.Columns {
			out = append(out, with(columnFacts(&q.catalog.schema.Columns[i], i+1)))
		}
	case "schemas": // those that are not of the system
		out = append(out, base)
	case "allschemas":
		for _, s := range []string{"information_schema", "pg_catalog", SchemaName} {
			out = append(out, with(map[string]string{"schema": s}))
		}
	case "ownschemas":
		for _, s := range []string{"information_schema", SchemaName} {
			out = append(out, with(map[string]string{"schema": s}))
		}
	case "types":
		for _, t := range []Type{Bool, Char, Name, Int8, Int2, Int4, Text, Oid, Float4, Float8, Bpchar, Varchar, Date, Timestamp, Timestamptz, Interval, Numeric} {
			out = append(out, with(typeFacts(t)))
		}
	}
	return out
}

func typeFacts(t Type) map[string]string {
	facts := map[string]string{"typname": types[t].short, "type": types[t].name, "typoid": strconv.Itoa(int(t)), "arrayoid": "0"}
	for a, i := range types {
		if i.elem == t {
			facts["arrayoid"] = strconv.Itoa(int(a))
		}
	}
	return facts
}

func columnFacts(c *Column, n int) map[string]string {
	facts := typeFacts(c.Type())
	facts["column"], facts["n"] = c.Name, strconv.Itoa(n)
	facts["typlen"] = strconv.Itoa(int(c.Type().Size()))
	facts["notnull"], facts["nullable"], facts["YES"] = "f", "t", "YES"
	if c.NotNull {
		facts["notnull"], facts["nullable"], facts["YES"] = "t", "f", "NO"
	}
	facts["storage"] = "x"
	switch c.Kind {
	case view.Int, view.Time:
		facts["storage"] = "p"
	case view.Decimal:
		facts["storage"] = "m"
	}
	return facts
}
