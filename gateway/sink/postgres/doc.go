// Package postgres writes the log of a grid's partitions into PostgreSQL: orders by COPY, and in the same transaction the
// row of the fence that holds the position. docs/postgres.md is its page.
//
// The client is github.com/jackc/pgx/v5: the one maintained driver in Go with COPY in the binary format, SQLSTATEs, several
// hosts in a connection string, and no C library. Rows are encoded here, straight from the log entry: pgx's CopyFrom takes
// a slice of interfaces per row. 5.12.0 or later, for its fixes of batches and of channel binding.
package postgres
