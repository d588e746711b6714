package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/gateway/sink/postgres"
	"github.com/ordergrid/ordergrid/internal/command"
)

type postgresFlags struct {
	connection postgres.Connection
	schema     string
	daysAhead  int
	executions bool
	only       bool
}

func postgresCommand() *cobra.Command {
	var f postgresFlags
	cmd := targetCommand("postgres", "Write orders to PostgreSQL, by COPY",
		`Writes the orders of a grid to the table orders of a schema: each once. The position is in the
table fence, in the transaction of the orders. The tables have to be there: grid-sink postgres
migrate makes them. With --executions what the orders did goes to the table executions, with
--only-executions that alone.

The connection is given by --url-file, or by --host, --database and --user. The server has to
prove its name by TLS (sslmode verify-full) unless written otherwise.`,
		usual{entries: sink.DefaultMaxEntries, bytes: sink.DefaultMaxBytes, linger: usualBatches.linger}, func(fl *pflag.FlagSet) {
			f.add(fl)
			fl.IntVar(&f.daysAhead, "days-ahead", 7, "how many tables of days to come are kept ready")
			fl.BoolVar(&f.executions, "executions", false, "write executions too, of a grid that matches")
			fl.BoolVar(&f.only, "only-executions", false, "write executions and no orders")
		}, f.open, func() bool { return f.executions || f.only })
	cmd.AddCommand(migrateCommand())
	return cmd
}

// add adds the flags of the connection.
func (f *postgresFlags) add(fl *pflag.FlagSet) {
	c := &f.connection
	fl.StringVar(&c.URLFile, "url-file", "", "file with the connection string, such as postgres://user:password@host:5432/database; read anew for each connection, as all files here")
	fl.StringVar(&c.Host, "host", "", "host of the server, several separated by commas, or the directory of its socket")
	fl.IntVar(&c.Port, "port", 5432, "its port")
	fl.StringVar(&c.Database, "database", "", "name of the database")
	fl.StringVar(&c.User, "user", "", "name of the user")
	fl.StringVar(&c.PasswordFile, "password-file", "", "file with the password")
	fl.StringVar(&c.SSLMode, "sslmode", "", "verify-full, verify-ca, require, prefer, allow or disable; default verify-full")
	fl.StringVar(&c.SSLRootCert, "sslrootcert", "", "PEM file of the authorities that must have signed the server's certificate; also with --url-file")
	fl.StringVar(&c.SSLCert, "sslcert", "", "PEM file of the certificate to present to the server")
	fl.StringVar(&c.SSLKey, "sslkey", "", "PEM file of its private key")
	fl.StringVar(&f.schema, "schema", postgres.DefaultSchema, "schema of the tables")
}

func (f *postgresFlags) options() postgres.Options {
	c := f.connection
	if c.URLFile != "" && c.Port == 5432 {
		c.Port = 0 // the default is not given
	}
	return postgres.Options{Connection: c, Schema: f.schema, DaysAhead: f.daysAhead, Executions: f.executions, OnlyExecutions: f.only}
}

func (f *postgresFlags) open(_ context.Context, of source) (sink.Target, error) {
	o := f.options()
	o.Grid, o.Logger = of.Grid, of.Log
	t, err := postgres.New(o)
	if err != nil {
		return nil, command.BadUsage(err)
	}
	return t, nil
}

func migrateCommand() *cobra.Command {
	var f postgresFlags
	cmd := &cobra.Command{
		Use: "migrate", Short: "Make the tables, or bring them to this program's version", Args: command.NoArgs,
		Long: `Makes the schema and its tables, or brings them to the version that this program writes, in one
transaction. It does nothing if there is nothing to do. The user becomes the owner of the tables.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			from, to, err := postgres.Migrate(cmd.Context(), f.options())
			if err != nil {
				return err
			}
			if from == to {
				fmt.Fprintf(cmd.OutOrStdout(), "schema %s has version %d: nothing to do\n", f.schema, to)
			} else {
				fmt.Fprintf(cmd.OutOrStdout(), "schema %s: version %d, was %d\n", f.schema, to, from)
			}
			return nil
		},
	}
	f.add(cmd.Flags())
	return cmd
}
