package sql

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Catalog answers statements by which clients explore a database. Those of a client are always
// the same but for the names that they ask about, so they are known by their words, in
// catalog.json, and answered from a catalog of one database, one schema, one table. A general
// answer would take PostgreSQL itself: these statements use what it has.
type Catalog struct {
	queries map[string][]*Query
	schema  *Schema
}

// Query is a known statement.
type Query struct {
	Client  string      `json:"client"`
	Name    string      `json:"name"`   // what it is for
	Words   string      `json:"words"`  // digest of its words without values
	Groups  []Group     `json:"groups"` // its values, in order
	Rows    string      `json:"rows"`   // what there is a row for
	Columns [][3]string `json:"columns"`
	catalog *Catalog
}

// Group of values of a statement: a literal, a parameter, or several with commas.
type Group struct {
	Is  []string `json:"is,omitempty"`  // the values
	Any string   `json:"any,omitempty"` // they vary, and are: name, oid, regexp, like, kinds, schema …
}

//go:embed catalog.json
var catalogJSON []byte

// NewCatalog reads the list for a table of these columns.
func NewCatalog(s *Schema) (*Catalog, error) {
	var list []*Query
	if err := json.Unmarshal(catalogJSON, &list); err != nil {
		return nil, err
	}
	c := &Catalog{queries: map[string][]*Query{}, schema: s}
	for _, q := range list {
		q.catalog = c
		c.queries[q.Words] = append(c.queries[q.Words], q)
	}
	return c, nil
}

// Found is a known statement with its values.
type Found struct {
	queries []*Query
	groups  [][]token
}

func (*Found) statement() {}

// find returns nil if the statement is none of the list, without much work if it does not
// mention a catalog.
func (c *Catalog) find(tokens []token) *Found {
	if c == nil || !slices.ContainsFunc(tokens, func(t token) bool {
		return (t.kind == word || t.kind == quoted) && (strings.HasPrefix(t.text, "pg_") || t.text == "information_schema" || t.text == "current_setting")
	}) {
		return nil
	}
	digest, groups := digestOf(tokens)
	if q := c.queries[digest]; q != nil {
		return &Found{q, groups}
	}
	return nil
}

// Seen is a group of values in a statement, and the words before it.
type Seen struct {
	Before []string
	Values []string
	Param  bool
}

// digestOf words: values and casts of them do not count, nor how many there are in a list.
func digestOf(tokens []token) (string, [][]token) {
	h := sha256.New()
	var groups [][]token
	isValue := func(t token) bool { return t.kind == text || t.kind == param || t.kind == number }
	for i := 0; i < len(tokens); i++ {
		if i+3 < len(tokens) && len(groups) > 0 && tokens[i].is("union") && isValue(tokens[i+3]) && again(tokens, tokens[i+3]) {
			i += 3
		}
		if !isValue(tokens[i]) {
			h.Write(append([]byte(tokens[i].text), 0))
			continue
		}
		g := []token{tokens[i]}
		i = behindCast(tokens, i)
		for i+2 < len(tokens) && tokens[i+1].is(",") && isValue(tokens[i+2]) {
			g = append(g, tokens[i+2])
			i = behindCast(tokens, i+2)
		}
		if n := len(groups); n > 0 && again(tokens, g[0]) { // of a list that is made of selects
			groups[n-1] = append(groups[n-1], g...)
			continue
		}
		groups = append(groups, g)
		h.Write([]byte{'?', 0})
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), groups
}

// again reports whether a value is behind UNION ALL SELECT.
func again(tokens []token, value token) bool {
	i := slices.Index(tokens, value)
	return i >= 4 && tokens[i-1].is("select") && tokens[i-2].is("all") && tokens[i-3].is("union")
}

// behindCast is the last token of a value with its casts to named types.
func behindCast(tokens []token, i int) int {
	for i+2 < len(tokens) && tokens[i+1].is("::") && tokens[i+2].kind == word {
		i += 2
		for i+2 < len(tokens) && tokens[i+1].is(".") {
			i += 2
		}
	}
	return i
}

func (f *Found) prepare(declared []Type) (*Prepared, *Error) {
	p := &Prepared{found: f}
	for _, g := range f.groups {
		for _, t := range g {
			if n, err := strconv.Atoi(t.text); t.kind == param && (err != nil || n < 1 || n > maxParameters) {
				return nil, failf(t.at, StateParameterName, "there is no parameter $%s", clip(t.text))
			} else if t.kind == param {
				for len(p.Params) < n {
					p.Params = append(p.Params, Text)
				}
			}
		}
	}
	for i, t := range declared {
		if i < len(p.Params) && t != 0 {
			if types[t].class == other {
				t = Text // regtype and its like, in text form
			}
			p.Params[i] = t
		}
	}
	for _, c := range f.queries[0].Columns {
		n, _ := strconv.Atoi(c[1])
		p.Outputs = append(p.Outputs, Output{Name: c[0], Type: Type(n)})
	}
	return p, nil
}

// plan finds the one of the statements with these words that has these values.
func (f *Found) plan(env *Env, values []value, outputs []Output) (*Plan, *Error) {
	p := &Plan{Limit: -1, env: env, Fixed: [][]*string{}, outputs: outputs}
	groups := make([][]string, len(f.groups))
	for i, g := range f.groups {
		for _, t := range g {
			s := t.text
			if t.kind == param {
				n, _ := strconv.Atoi(s)
				v := &values[n-1]
				if s = v.format(env); v.null {
					s = ""
				}
				for _, item := range v.list {
					groups[i] = append(groups[i], item.format(env))
				}
				if v.typ.class() == array {
					continue
				}
			}
			groups[i] = append(groups[i], s)
		}
	}
	for _, q := range f.queries {
		if wanted, same := q.matches(groups); same {
			if wanted {
				p.Fixed = q.rows(env, groups)
			}
			return p, nil
		}
	}
	return nil, unsupported(-1, "this statement about the catalog with these values", "docs/sql.md lists those that are known.")
}

// matches reports whether the values are those of the statement, and whether what they name is
// there.
func (q *Query) matches(groups [][]string) (wanted, same bool) {
	if len(groups) != len(q.Groups) {
		return false, false
	}
	wanted = true
	for i, g := range q.Groups {
		if g.Any == "" && !slices.Equal(g.Is, groups[i]) {
			return false, false
		}
		has := func(names ...string) bool {
			return slices.ContainsFunc(groups[i], func(s string) bool { return slices.Contains(names, s) })
		}
		switch g.Any {
		case "name":
			wanted = wanted && has(TableName)
		case "oid":
			wanted = wanted && has(strconv.Itoa(TableOid))
		case "schema":
			wanted = wanted && has(SchemaName)
		case "kinds":
			wanted = wanted && has("r")
		case "regexp":
			wanted = wanted && matchesRegexp(groups[i][0], TableName)
		case "schemaregexp":
			wanted = wanted && matchesRegexp(groups[i][0], SchemaName)
		case "like":
			wanted = wanted && matchesLike(groups[i][0], TableName)
		case "schemalike":
			wanted = wanted && (q.Rows == "allschemas" || matchesLike(groups[i][0], SchemaName))
		case "ident": // a table's name as it is quoted in a statement, with its schema or not
			wanted = wanted && has(TableName, SchemaName+"."+TableName, `"`+TableName+`"`)
		}
	}
	return wanted, true
}

// matchesRegexp matches in linear time; PostgreSQL's and Go's are the same for the patterns that
// psql makes of names.
func matchesRegexp(pattern, s string) bool {
	if len(pattern) > 256 {
		return false
	}
	re, err := regexp.Compile(pattern)
	return err == nil && re.MatchString(s)
}

func matchesLike(pattern, s string) bool {
	if len(pattern) > 256 {
		return false
	}
	var b strings.Builder
	b.WriteByte('^')
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '%':
			b.WriteString(".*")
		case c == '_':
			b.WriteByte('.')
		case c == '\\' && i+1 < len(pattern):
			i++
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		default:
			b.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	re, err := regexp.Compile(b.String() + "$")
	return err == nil && re.MatchString(s)
}
