package postgres

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ordergrid/ordergrid/gateway/sink"
)

// DefaultSchema is where the tables are unless told otherwise.
const DefaultSchema = "ordergrid"

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrations are the files' texts; the first makes version 1.
func migrations() (names, texts []string) {
	names, _ = fs.Glob(migrationFiles, "migrations/*.sql") // sorted; the pattern is valid
	for _, name := range names {
		text, _ := migrationFiles.ReadFile(name) // it is there: it was listed
		texts = append(texts, string(text))
	}
	return names, texts
}

// SchemaVersion is the version of the schema that this program writes.
func SchemaVersion() int {
	names, _ := migrations()
	return len(names)
}

type column struct{ name, sqlType string }

// orderColumns are those of COPY, in its order: that of rows.row.
var orderColumns = []column{
	{"grid", "text"}, {"partition", "integer"}, {"seq", "bigint"}, {"epoch", "bigint"}, {"lineage", "bigint"}, {"hash", "bigint"},
	{"received", "timestamp with time zone"}, {"cl_ord_id", "text"}, {"symbol", "text"}, {"account", "text"}, {"side", "text"},
	{"quantity", "numeric"}, {"price", "numeric"}, {"payload", "bytea"},
}

// executionColumns are those of COPY, in its order: that of executionRows.next.
var executionColumns = []column{
	{"grid", "text"}, {"partition", "integer"}, {"entry", "bigint"}, {"n", "integer"}, {"lineage", "bigint"}, {"received", "timestamp with time zone"},
	{"kind", "text"}, {"symbol", "text"}, {"account", "text"}, {"side", "text"}, {"cl_ord_id", "text"}, {"order_seq", "bigint"}, {"other_seq", "bigint"},
	{"price", "numeric"}, {"quantity", "numeric"}, {"leaves", "numeric"}, {"cumulative", "numeric"}, {"reason", "text"}, {"passive", "boolean"}, {"auction", "boolean"},
}

type table struct {
	name    string
	columns []column
	rights  []string
}

// executionsTable is what a sink needs that writes executions.
var executionsTable = table{"executions", executionColumns, []string{"INSERT"}}

// tables are what a sink of orders needs, orders first, and the rights on it.
var tables = []table{
	{"orders", orderColumns, []string{"INSERT"}},
	{"others", []column{{"grid", "text"}, {"partition", "integer"}, {"seq", "bigint"}, {"through", "bigint"}}, []string{"INSERT"}},
	{"fence", []column{{"grid", "text"}, {"partition", "integer"}, {"writer", "bigint"}, {"lineage", "bigint"}, {"epoch", "bigint"}, {"first_seq", "bigint"},
		{"seq", "bigint"}, {"hash", "bigint"}, {"orders", "bigint"}, {"received", "timestamp with time zone"}, {"written", "timestamp with time zone"},
		{"opened", "timestamp with time zone"}, {"backend", "integer"}, {"backend_start", "timestamp with time zone"}}, []string{"SELECT", "INSERT", "UPDATE"}},
	{"schema_version", []column{{"version", "integer"}}, []string{"SELECT"}},
}

// needed are the tables that a sink writes to.
func needed(o *Options) []table {
	list := slices.Clone(tables)
	if o.OnlyExecutions {
		list = list[1:] // orders
	}
	if o.Executions {
		list = append(list, executionsTable)
	}
	return list
}

// copyStatement is the COPY of a table.
func copyStatement(schema, table string, columns []column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = pgx.Identifier{c.name}.Sanitize()
	}
	return fmt.Sprintf("COPY %s (%s) FROM STDIN (FORMAT binary)", qualified(schema, table), strings.Join(names, ", "))
}

func qualified(schema, name string) string { return pgx.Identifier{schema, name}.Sanitize() }

// found is a column of the database, with its table.
type found struct {
	table, column, sqlType string
	required               bool // it has to be given a value
	persistence            string
	rights                 []string // of the user, on the table
}

const columnsQuery = `
SELECT c.relname, a.attname, format_type(a.atttypid, NULL), a.attnotnull AND NOT a.atthasdef AND a.attidentity = '', c.relpersistence::text,
       array_remove(ARRAY[CASE WHEN has_table_privilege(c.oid, 'SELECT') THEN 'SELECT' END, CASE WHEN has_table_privilege(c.oid, 'INSERT') THEN 'INSERT' END,
                          CASE WHEN has_table_privilege(c.oid, 'UPDATE') THEN 'UPDATE' END], NULL)
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
WHERE n.nspname = $1 AND c.relname IN ('orders', 'executions', 'others', 'fence', 'schema_version') AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped`

// checkSchema reports tables that are not those of this version, or that the user may not write.
func checkSchema(ctx context.Context, conn *pgx.Conn, schema string, needed []table) error {
	usage, exists := false, false
	err := conn.QueryRow(ctx, "SELECT count(*) > 0, coalesce(bool_or(has_schema_privilege(oid, 'USAGE')), false) FROM pg_catalog.pg_namespace WHERE nspname = $1", schema).Scan(&exists, &usage)
	if err != nil {
		return explain("schema "+schema, err)
	}
	rows, err := conn.Query(ctx, columnsQuery, schema)
	if err != nil {
		return explain("tables of schema "+schema, err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f found, err error) {
		return f, row.Scan(&f.table, &f.column, &f.sqlType, &f.required, &f.persistence, &f.rights)
	})
	if err != nil {
		return explain("tables of schema "+schema, err)
	}
	if !exists || !slices.ContainsFunc(all, func(f found) bool { return f.table == "schema_version" }) {
		return &sink.PermanentError{What: fmt.Sprintf("database %s has no schema %s with the tables of the sink", conn.Config().Database, schema), Remedy: "run: grid-sink postgres migrate"}
	}
	user := conn.Config().User
	if !usage {
		return missing(user, "USAGE on schema "+schema)
	}
	if err := checkVersion(ctx, conn, schema, user, all); err != nil {
		return err
	}
	return compare(schema, user, needed, all)
}

func checkVersion(ctx context.Context, conn *pgx.Conn, schema, user string, all []found) error {
	if !slices.ContainsFunc(all, func(f found) bool { return f.table == "schema_version" && slices.Contains(f.rights, "SELECT") }) {
		return missing(user, "SELECT on "+schema+".schema_version")
	}
	version, err := versionOf(ctx, conn, schema)
	if err != nil {
		return err
	}
	return judgeVersion(schema, version)
}

func versionOf(ctx context.Context, conn *pgx.Conn, schema string) (version int, err error) {
	err = conn.QueryRow(ctx, "SELECT coalesce(max(version), 0) FROM "+qualified(schema, "schema_version")).Scan(&version)
	return version, explain("version of schema "+schema, err)
}

func judgeVersion(schema string, version int) error {
	switch want := SchemaVersion(); {
	case version < want:
		return &sink.PermanentError{What: fmt.Sprintf("schema %s has version %d, this program writes version %d", schema, version, want), Remedy: "run: grid-sink postgres migrate"}
	case version > want:
		return &sink.PermanentError{What: fmt.Sprintf("schema %s has version %d, this program writes version %d", schema, version, want), Remedy: "use the release that made it, or a later one"}
	}
	return nil
}

func missing(user, what string) error {
	return &sink.PermanentError{What: fmt.Sprintf("user %s has no right %s", user, what), Remedy: "grant it"}
}

// compare reports the first difference between the tables there and those wanted. Further columns are allowed if they
// need no value.
func compare(schema, user string, needed []table, all []found) error {
	for _, t := range needed {
		table := schema + "." + t.name
		there := map[string]found{}
		for _, f := range all {
			if f.table == t.name {
				there[f.column] = f
			}
		}
		other := func(format string, args ...any) error {
			return &sink.PermanentError{What: fmt.Sprintf("table "+table+" "+format, args...), Remedy: "put it back as the sink's migrations have it, or give the sink a schema of its own"}
		}
		if len(there) == 0 {
			return other("does not exist")
		}
		for _, c := range t.columns {
			switch f, found := there[c.name]; {
			case !found:
				return other("has no column %s (%s)", c.name, c.sqlType)
			case f.sqlType != c.sqlType:
				return other("has column %s of type %s, allowed: %s", c.name, f.sqlType, c.sqlType)
			case f.persistence != "p":
				return other("is unlogged or temporary: a crash of the server would empty it")
			}
			for _, right := range t.rights {
				if !slices.Contains(there[c.name].rights, right) {
					return missing(user, right+" on "+table)
				}
			}
		}
		for name, f := range there {
			if f.required && t.name != "schema_version" && !slices.ContainsFunc(t.columns, func(c column) bool { return c.name == name }) {
				return other("has another column %s (%s) that needs a value", name, f.sqlType)
			}
		}
	}
	return nil
}
