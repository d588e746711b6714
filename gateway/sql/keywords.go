package sql

import "strings"

func words(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

// reserved words are no names (PostgreSQL's documentation, appendix C: reserved, and those that
// can be functions or types only).
var reserved = words(`all analyse analyze and any array as asc asymmetric both case cast check collate column
	constraint create current_catalog current_date current_role current_time current_timestamp current_user default
	deferrable desc distinct do else end except false fetch for foreign from grant group having in initially intersect
	into lateral leading limit localtime localtimestamp not null offset on only or order placing primary references
	returning select session_user some symmetric system_user table then to trailing true union unique user using variadic
	when where window with
	authorization binary collation concurrently cross current_schema freeze full ilike inner is isnull join left like
	natural notnull outer overlaps right similar tablesample verbose`)

// typeWords are reserved words that can be names of functions and types.
var typeWords = words(`authorization binary collation concurrently cross current_schema freeze full ilike inner is isnull
	join left like natural notnull outer overlaps right similar tablesample verbose`)

// notCalled are names of types and others that are no names of functions.
var notCalled = words("between none inout out precision treat values bigint bit boolean char character dec decimal float int integer interval national nchar numeric real setof smallint time timestamp varchar")

// clauses are what may follow a list of columns, which may be empty.
var clauses = words("from where group order limit offset fetch")

// labelled words name a column of an answer only behind AS.
var labelled = words(`array as char character create day except fetch filter for from grant group having hour intersect
	into isnull limit minute month notnull offset on order over overlaps precision returning second to union varying
	where window with within without year`)

// writes are the verbs of statements that change something.
var writes = words(`merge create alter drop truncate grant revoke comment copy vacuum analyze
	reindex cluster lock refresh security import call do load checkpoint prepare execute notify`)

// further are words behind which a select goes on with what is not supported.
var further = map[string]string{
	"join": "joins", "inner": "joins", "left": "joins", "right": "joins", "full": "joins", "cross": "joins", "natural": "joins",
	"union": "UNION", "intersect": "INTERSECT", "except": "EXCEPT", "having": "HAVING", "window": "WINDOW", "for": "FOR UPDATE and FOR SHARE",
	"over": "window functions", "filter": "FILTER", "within": "WITHIN GROUP", "tablesample": "TABLESAMPLE", "collate": "COLLATE",
	"isnull": "ISNULL (IS NULL is)", "notnull": "NOTNULL (IS NOT NULL is)", "similar": "SIMILAR TO", "overlaps": "OVERLAPS", "into": "SELECT INTO", "on": "ON",
	"at": "AT TIME ZONE", "with": "WITH", "operator": "OPERATOR()", "using": "USING",
}
