package postgres

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordergrid/ordergrid/gateway/sink"
)

// remedies are the SQLSTATEs, or their classes of two characters, that no retry mends. Everything else passes: a full
// disk (53), a server that stops or starts (57), a lost connection (08), a conflict (40), a lock (55), a standby that is
// about to become primary (25006).
var remedies = map[string]string{
	"28P01": "correct the password in the secret; it is read again for every connection",
	"28":    "let the user connect from here (pg_hba.conf), with the authentication and TLS that the server asks for",
	"3D000": "create the database, or name the one that is there",
	"3F000": "run: grid-sink postgres migrate",
	"42P01": "run: grid-sink postgres migrate",
	"42883": "run: grid-sink postgres migrate",
	"42501": "grant it: USAGE on the schema; INSERT on orders and others; SELECT, INSERT, UPDATE on fence; SELECT on schema_version; EXECUTE on make_day",
	"23505": "entries behind the position of the fence are there already: was a row of fence changed or deleted by hand? Set its seq, hash, lineage and epoch to those of the last entry in orders and others",
	"0A":    "use PostgreSQL 13 or later",
	"22":    "report it with the entry's number: an order of the log does not fit its column",
	"23":    "remove constraints that were added to the tables of the sink",
	"42":    "run: grid-sink postgres migrate, and undo changes of its tables",
}

// explain makes an error of the driver one that names its place, permanent or not.
func explain(what string, err error) error {
	var permanent *sink.PermanentError
	var server *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &permanent):
		return err
	case errors.As(err, &server):
		text := fmt.Errorf("%s: %w", what, describe(server))
		for _, code := range []string{server.Code, server.Code[:min(2, len(server.Code))]} {
			if remedy, found := remedies[code]; found && server.Code != "42P04" {
				return &sink.PermanentError{What: what, Remedy: remedy, Err: describe(server)}
			}
		}
		return text
	}
	if remedy := untrusted(err); remedy != "" {
		return &sink.PermanentError{What: what, Remedy: remedy, Err: err}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// untrusted is the remedy for a server that TLS refuses, or that refuses TLS; "" for other errors.
func untrusted(err error) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var check *tls.CertificateVerificationError
	switch {
	case errors.As(err, &host):
		return "use a host name that the server's certificate has, or sslmode verify-ca where names cannot be kept"
	case errors.As(err, &authority), errors.As(err, &invalid), errors.As(err, &check):
		return "give the certificate authority of the server with sslrootcert"
	case strings.Contains(err.Error(), "server refused TLS connection"):
		return "switch TLS on at the server; sslmode prefer or disable sends passwords and orders in the clear"
	}
	return ""
}

// serverError is what the server reported, with its details.
type serverError struct{ *pgconn.PgError }

func (e serverError) Unwrap() error { return e.PgError }

func (e serverError) Error() string {
	text := fmt.Sprintf("%s: %s (SQLSTATE %s)", e.Severity, e.Message, e.Code)
	for _, more := range []string{e.Detail, e.Hint} {
		if more != "" {
			text += ": " + more
		}
	}
	return text
}

func describe(e *pgconn.PgError) error { return serverError{e} }

// state is the SQLSTATE of an error, "" if it has none.
func state(err error) string {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Code
	}
	return ""
}
