package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sql"
	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Grid answers questions: a *client.Client.
type Grid interface {
	Query(ctx context.Context, q client.Query) (*client.Answer, error)
	Explain(ctx context.Context, p wire.PartitionID, q client.Query) (string, error)
	Table() []client.PartitionInfo
	Region(name string) *client.Region
}

// Config of a Server.
type Config struct {
	Listen string
	// TLS of the listener; nil with Open only.
	TLS func() *tls.Config
	// Open lets in every client that reaches the listener, with the gateway's own rights.
	Open bool
	// OpenWrites lets clients of Open change regions, too.
	OpenWrites bool
	// Grid is asked in the name of the gateway, for clients that Rules let in by their
	// certificate or password.
	Grid Grid
	// Rules are the grid's: a client needs the permission Query, and Read for statements about
	// regions. Grid needs them as well. nil: no client is let in by them.
	Rules func() *access.Rules
	// Users returns the users that have passwords here; nil: there are none.
	Users func() map[string]Verifier
	// Dial connects to the grid with the token that a client sends as its password. The grid
	// judges it. nil: tokens are not taken.
	Dial func(ctx context.Context, token string) (Connected, error)
	// Extra are the further columns that the grid's nodes keep.
	Extra  []view.Extra
	Limits Limits
	Logger *slog.Logger
}

// Connected is a Grid that is closed when it is no longer used.
type Connected interface {
	Grid
	Close() error
}

// Limits of the listener. 0 means the default.
type Limits struct {
	Connections int           // at the same time; 200
	PerUser     int           // of one user; 50
	Unknown     int           // that have not said who they are; 50
	Statements  int           // prepared, of a connection; 256
	Portals     int           // open, of a connection; 16
	Statement   sql.Bounds    // of a statement
	Kept        int           // bytes of prepared statements of a connection; 1 MiB
	Timeout     time.Duration // of a statement; 30 s
	Idle        time.Duration // without a statement; 30 min
	IdleInBlock time.Duration // in a transaction; 5 min
	Startup     time.Duration // until a client has proved who it is; 10 s
	Write       time.Duration // that a client may not read; 30 s
	Tokens      int           // connections to the grid for tokens; 100
}

func (l Limits) with() Limits {
	for _, d := range []struct {
		v   *int
		def int
	}{{&l.Connections, 200}, {&l.PerUser, 50}, {&l.Unknown, 50}, {&l.Statements, 256}, {&l.Portals, 16}, {&l.Kept, 1 << 20}, {&l.Tokens, 100}} {
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{{&l.Timeout, 30 * time.Second}, {&l.Idle, 30 * time.Minute}, {&l.IdleInBlock, 5 * time.Minute}, {&l.Startup, 10 * time.Second}, {&l.Write, 30 * time.Second}} {
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	if l.Statement.Bytes == 0 {
		l.Statement.Bytes = 64 << 10
	}
	return l
}

// maxMessage is more than a statement may have, so that one that is too long is refused with
// the reason and the connection goes on.
const maxMessage = 2 << 20

func (c *Config) check() error {
	switch {
	case c.TLS == nil && !c.Open:
		return fmt.Errorf("sql server: Config.TLS is nil, allowed: TLS, or Open, which lets in every client without")
	case c.OpenWrites && !c.Open:
		return fmt.Errorf("sql server: Config.OpenWrites without Open, allowed: with Open; else rules and the grid judge who writes")
	case c.Open && (c.Users != nil || c.Dial != nil || c.Rules != nil):
		return fmt.Errorf("sql server: Config.Open with Users, Dial or Rules, allowed: Open alone")
	case !c.Open && c.Dial == nil && c.Rules == nil:
		return fmt.Errorf("sql server: Config.Dial and Config.Rules are nil, allowed: one of them, or Open")
	case c.Users != nil && c.Rules == nil:
		return fmt.Errorf("sql server: Config.Users without Config.Rules, allowed: rules which say which of them may ask")
	case c.Grid == nil:
		return fmt.Errorf("sql server: Config.Grid is nil, allowed: a client of a grid")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Limits = c.Limits.with()
	return nil
}

// certificateUser returns the user that a certificate names; nil without a name.
func certificateUser(cert *x509.Certificate) *access.Identity {
	return access.OfCertificate(cert, false)
}
