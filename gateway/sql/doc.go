// Package sql reads statements of PostgreSQL's dialect and turns them into questions to a
// grid: a table of orders, and one of each region, read-only. It does no I/O. Parse reads a
// statement, Prepare resolves its names and types, Bind puts the values of its parameters in
// and returns a Plan: the questions to ask (query.Query), or what to read of a region, and how
// their rows become those of the answer.
// Statements by which clients explore a database are known by their text (catalog.go).
//
// The dialect is PostgreSQL's in what is accepted: a statement that is answered here is
// answered there with the same rows and types, given the same table and the collation C.
// What is not supported is refused with a SQLSTATE and its place in the statement.
package sql
