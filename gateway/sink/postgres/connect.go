package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordergrid/ordergrid/gateway/sink"
)

// Connection says where the database is. Files are read again for every connection, so secrets can be exchanged while a
// sink runs.
type Connection struct {
	// URLFile holds a connection string, as postgres://user:password@host:5432/database or host=… user=…; with it every
	// other field is empty, SSLRootCert excepted.
	URLFile string

	Host         string // name or address, several by comma, or the directory of a socket
	Port         int    // 5432 when 0
	Database     string
	User         string
	PasswordFile string
	SSLMode      string // verify-full when empty, also if the connection string has none
	SSLRootCert  string // file with the certificate authority
	SSLCert      string // file with a client certificate
	SSLKey       string // file with its key
}

// sslModes are those of libpq, the safe one first.
var sslModes = []string{"verify-full", "verify-ca", "require", "prefer", "allow", "disable"}

const (
	defaultSSLMode = "verify-full"
	connectTimeout = 10 * time.Second
	maxSecret      = 64 << 10
)

// check reports a field that is not allowed.
func (c *Connection) check() error {
	rest := *c
	rest.URLFile, rest.SSLRootCert = "", ""
	switch {
	case c.URLFile != "" && rest != (Connection{}):
		return fmt.Errorf("postgres: a file with the connection string (%s) and single parameters are given, allowed: one of both", c.URLFile)
	case c.URLFile != "":
		return nil
	case c.Host == "" || c.Database == "" || c.User == "":
		return fmt.Errorf("postgres: host is %q, database %q, user %q, allowed: all three, or a file with the connection string", c.Host, c.Database, c.User)
	case c.Port < 0 || c.Port > 65535:
		return fmt.Errorf("postgres: port is %d, allowed: 1..65535, or 0 for 5432", c.Port)
	case c.SSLMode != "" && !slices.Contains(sslModes, c.SSLMode):
		return fmt.Errorf("postgres: sslmode is %q, allowed: %s", c.SSLMode, strings.Join(sslModes, ", "))
	}
	return nil
}

// config reads the files. An error never has a part of a secret.
func (c *Connection) config(application string) (*pgx.ConnConfig, error) {
	text, file, err := c.text()
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(text)
	if err != nil {
		what := fmt.Sprintf("connection parameters of host %q, database %q", c.Host, c.Database)
		if file != "" {
			what = "connection string in " + file
		}
		// The driver's text may quote the string, and what it takes for the password in it.
		return nil, &sink.PermanentError{What: what + " cannot be read", Remedy: "write it as postgres://user:password@host:5432/database?sslrootcert=/file, with reserved characters of the password percent-encoded"}
	}
	config.ConnectTimeout = connectTimeout
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.RuntimeParams["application_name"] = application
	config.RuntimeParams["timezone"] = "UTC"
	return config, nil
}

// text is the connection string, with sslmode in it, and the file that it is from.
func (c *Connection) text() (text, file string, err error) {
	if c.URLFile == "" {
		text, err = c.parameters()
		return text, "", err
	}
	if text, err = secret(c.URLFile); err != nil {
		return "", "", err
	}
	switch u, err := url.Parse(text); {
	case strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://"):
		if err != nil {
			return text, c.URLFile, nil // pgx refuses it
		}
		q := u.Query()
		if q.Get("sslmode") == "" && q.Get("ssl") == "" {
			q.Set("sslmode", defaultSSLMode)
		}
		if c.SSLRootCert != "" {
			q.Set("sslrootcert", c.SSLRootCert)
		}
		u.RawQuery = q.Encode()
		return u.String(), c.URLFile, nil
	}
	if !strings.Contains(text, "sslmode") {
		text += " sslmode=" + defaultSSLMode
	}
	if c.SSLRootCert != "" {
		text += " sslrootcert=" + quoted(c.SSLRootCert) // the last one counts
	}
	return text, c.URLFile, nil
}

// quoted is a value of a connection string.
func quoted(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}

func (c *Connection) parameters() (string, error) {
	var b strings.Builder
	put := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s=%s ", key, quoted(value))
		}
	}
	put("host", c.Host)
	put("port", strconv.Itoa(cmp.Or(c.Port, 5432)))
	put("dbname", c.Database)
	put("user", c.User)
	put("sslmode", cmp.Or(c.SSLMode, defaultSSLMode))
	put("sslrootcert", c.SSLRootCert)
	put("sslcert", c.SSLCert)
	put("sslkey", c.SSLKey)
	if c.PasswordFile != "" {
		password, err := secret(c.PasswordFile)
		if err != nil {
			return "", err
		}
		put("password", password)
	}
	return b.String(), nil
}

// secret reads a small file without the line end that editors add.
func secret(file string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", &sink.PermanentError{What: "a file of the connection", Err: err, Remedy: "mount the secret there, readable for the user of the process"}
	}
	text := strings.TrimRight(string(raw), "\r\n")
	if text == "" || len(text) > maxSecret || strings.ContainsAny(text, "\n\x00") {
		return "", &sink.PermanentError{What: fmt.Sprintf("%s has %d bytes", file, len(raw)), Remedy: "allowed: one line, not empty"}
	}
	return text, nil
}

// connect connects as often as it is called: the caller backs off.
func connect(ctx context.Context, c *Connection, application string) (*pgx.Conn, error) {
	config, err := c.config(application)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, explain("connection to "+place(config), err)
	}
	return conn, nil
}

// place names the database for messages.
func place(c *pgx.ConnConfig) string {
	return fmt.Sprintf("%s:%d/%s as %s", c.Host, c.Port, c.Database, c.User)
}

// closeTimeout bounds a polite end of a connection.
const closeTimeout = time.Second

func disconnect(conn *pgx.Conn) error {
	if conn == nil || conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := conn.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}
