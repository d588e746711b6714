package sql

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	pgquery "github.com/wasilibs/go-pgquery"
	"github.com/wasilibs/go-pgquery/parser"

	"github.com/ordergrid/ordergrid/gateway/sql"
)

// pieces that statements are made and broken with.
var pieces = strings.Fields(`select from where orders symbol price seq and or not in between like is null true false distinct group by order
	asc desc nulls first last limit offset as all any ( ) ( ) , , * = <> < > <= >= + - :: ; . 1 1.5 .5 1e3 'x' 'it''s' E'a\n' $1 $2 "q" "Q" count(*) now() interval
	timestamptz -> ->> #> #>> insert into update delete values set conflict do nothing returning excluded key value regions.positions cast text numeric [ ] array fetch only rows row set show begin commit to`)

// TestSyntaxIsThatOfPostgreSQL breaks statements of the subset, and holds what is made of them
// against PostgreSQL's own parser (as WebAssembly): what is accepted here is accepted there, and a
// syntax error here is one there, mostly at the same place.
func TestSyntaxIsThatOfPostgreSQL(t *testing.T) {
	seed := uint64(number("ORDERGRID_SEED", int(rand.Uint32())))
	t.Logf("ORDERGRID_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 5))
	schema, err := sql.NewSchema(nil)
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := sql.NewCatalog(schema)
	if err != nil {
		t.Fatal(err)
	}
	counts, wrong := map[string]int{}, 0
	for n := range 3 * number("ORDERGRID_SQL_QUESTIONS", 1500) {
		a := &asker{r: r, bind: n%2 == 1}
		text := a.statement()
		switch n % 8 {
		case 2, 3:
			text = a.change()
		case 4, 5:
			a.of = fields
			text = a.ofFields()
		}
		for range r.IntN(4) {
			text = broken(r, text)
		}
		all, ours := sql.Parse(text, sql.Bounds{}, catalog)
		for _, one := range all {
			if r, ok := one.Statement.(*sql.Refused); ok {
				ours = r.Err
			}
		}
		_, theirs := pgquery.Parse(text)
		var e *parser.Error
		errors.As(theirs, &e)
		switch {
		case ours == nil && theirs == nil:
			counts["accepted"]++
		case ours == nil:
			wrong++
			t.Errorf("accepted, and not by PostgreSQL: %s\n%v", text, theirs)
		case ours.Code != sql.StateSyntax:
			counts["not supported"]++
		case theirs == nil && parameterAt(text[ours.Offset:]):
			counts["parameter"]++ // this build of the parser takes them in place of strings, PostgreSQL does not
		case theirs == nil && strings.Contains(ours.Message, "requires inference specification"):
			counts["not in the grammar"]++ // PostgreSQL finds it behind its parser, with the same SQLSTATE
		case theirs == nil:
			wrong++
			t.Errorf("a syntax error here only: %s\n%v at %d", text, ours, ours.Position(text))
		case e != nil && e.Cursorpos != ours.Position(text):
			counts["another place"]++ // both parsers are right to stop, theirs sees one word ahead
		default:
			counts["syntax error"]++
		}
		if wrong == 10 {
			return
		}
	}
	t.Log(counts)
	if counts["accepted"] == 0 || counts["syntax error"] < 3*counts["another place"] {
		t.Errorf("%v: the statements test nothing", counts)
	}
}

// parameterAt reports whether one of the next two words is a parameter.
func parameterAt(text string) bool {
	words := strings.Fields(text)
	return strings.HasPrefix(words[0], "$") || len(words) > 1 && strings.HasPrefix(words[1], "$")
}

// broken drops, doubles, replaces or adds a word.
func broken(r *rand.Rand, text string) string {
	words := strings.Fields(text)
	i := r.IntN(len(words))
	switch r.IntN(4) {
	case 0:
		words = append(words[:i:i], words[i+1:]...)
	case 1:
		words = append(words[:i+1:i+1], words[i:]...)
	case 2:
		words[i] = pick(r, pieces)
	default:
		words = append(words[:i:i], append([]string{pick(r, pieces)}, words[i:]...)...)
	}
	if len(words) == 0 {
		return "select"
	}
	return strings.Join(words, " ")
}
