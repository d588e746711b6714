package fixdoor

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Config of a Door.
type Config struct {
	// Addresses are host:port of order-gateways; a session that is cut logs on at the next one.
	Addresses []string
	// Sessions is the file of the gateways' sessions (--sessions of order-gateway), whose password files can be read.
	Sessions string
	// TLS gives the configuration of a connection to a host; nil: plain TCP.
	TLS func(host string) (*tls.Config, error)
	// Timeout bounds one order, reconnects included; then its fate is unknown.
	Timeout time.Duration
}

// Door hands out the sessions of a file.
type Door struct {
	cfg  Config
	home func(version, sender, target string) wire.PartitionID
	free []entry
}

// entry is a session in the file, as far as a counterparty needs it.
type entry struct {
	Version      string `json:"version"`
	SenderCompID string `json:"senderCompID"`
	TargetCompID string `json:"targetCompID"`
	Username     string `json:"username"`
	PasswordFile string `json:"passwordFile"`
	Segment      string `json:"segment,omitempty"`
}

func (e *entry) name() Name { return Name{e.Version, e.SenderCompID, e.TargetCompID} }

// login is what a Logon proves who it is with; empty without a password.
type login struct{ name, password string }

// New reads the file. home is the partition of a session, which its names choose.
func New(cfg Config, home func(version, sender, target string) wire.PartitionID) (*Door, error) {
	if len(cfg.Addresses) == 0 {
		return nil, errors.New("no address of an order-gateway; allowed: host:port, one or more")
	}
	for _, a := range cfg.Addresses {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return nil, fmt.Errorf("address %.100q of an order-gateway: %w; allowed: host:port", a, err)
		}
	}
	text, err := os.ReadFile(cfg.Sessions)
	if err != nil {
		return nil, err
	}
	var file struct {
		Sessions []entry `json:"sessions"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Sessions, err)
	}
	for i, e := range file.Sessions {
		if e.Version == "" || e.SenderCompID == "" || e.TargetCompID == "" {
			return nil, fmt.Errorf("%s: sessions[%d] has version %q, senderCompID %q, targetCompID %q; allowed: all set", cfg.Sessions, i, e.Version, e.SenderCompID, e.TargetCompID)
		}
	}
	return &Door{cfg: cfg, home: home, free: file.Sessions}, nil
}

// Open logs a session on that is in a partition, with both numbers at 1. Each session is handed out once.
func (d *Door) Open(ctx context.Context, version string, p wire.PartitionID) (*Session, error) {
	of := 0
	for i, e := range d.free {
		if e.Version != version || e.Segment != "" {
			continue
		}
		of++
		if d.home(e.Version, e.SenderCompID, e.TargetCompID) != p {
			continue
		}
		user, err := d.password(&e)
		if err != nil {
			return nil, err
		}
		d.free = append(d.free[:i:i], d.free[i+1:]...)
		x := &Session{door: d, name: e.name(), user: user, partition: p, buf: make([]byte, 16<<10)}
		return x, x.resume(ctx, time.Now().Add(openLimit))
	}
	return nil, fmt.Errorf("%s has no further session of %s in partition %s (%d of that version are left, in others): each publishing thread needs one of its own. "+
		"SenderCompID and TargetCompID choose the partition; add sessions, or use fewer --threads", d.cfg.Sessions, version, p, of)
}

// openLimit is how long the first Logon may be tried: a gateway that has just started knows the grid a little later.
const openLimit = 10 * time.Second

// password reads that of a session, as its gateway does.
func (d *Door) password(e *entry) (login, error) {
	if e.PasswordFile == "" {
		return login{}, nil
	}
	path := e.PasswordFile
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(d.cfg.Sessions), path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return login{}, fmt.Errorf("password of session %s: %w", e.name(), err)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return login{e.Username, string(bytes.TrimRight(line, "\r"))}, nil
}

// Name says which session it is.
func (x *Session) Name() Name { return x.name }
