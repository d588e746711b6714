// Package roster reads which FIX sessions there are, and decides who may log on to them.
package roster

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Entry is a session in the file. Secrets are in files of their own.
type Entry struct {
	Version       string `json:"version"`       // FIX.4.2, FIX.4.4, FIXT.1.1 for FIX 5.0 SP2
	SenderCompID  string `json:"senderCompID"`  // of the counterparty
	TargetCompID  string `json:"targetCompID"`  // of the gateway
	Username      string `json:"username"`      // tag 553
	PasswordFile  string `json:"passwordFile"`  // tag 554 is compared with its first line; relative to Options.Passwords
	Certificate   string `json:"certificate"`   // DNS name or common name of the client's certificate
	User          string `json:"user"`          // of the grid: tag 554 is a token of its, which the grid judges
	ResetOnLogon  bool   `json:"resetOnLogon"`  // both numbers begin at 1 with each logon
	NextExpected  bool   `json:"nextExpected"`  // tag 789
	LastProcessed bool   `json:"lastProcessed"` // tag 369
	ResendChunk   uint64 `json:"resendChunk"`   // messages asked for at once; 0: all
	// CancelOnDisconnect is when the grid cancels the orders of the session; left out: Options.Cancel.
	CancelOnDisconnect *Cancel `json:"cancelOnDisconnect"`
	Segment            string  `json:"segment"` // a symbol: the session trades what its partition does, in a grid that matches

	password *[sha256.Size]byte
	mode     fix.CancelMode
	grace    time.Duration
}

// Roster has the sessions of a file.
type Roster struct {
	entries []Entry
	byID    map[fix.ID]*Entry
	homes   map[fix.ID]*fix.Home // of those that get drop copies
	options Options
	path    string
	sum     [sha256.Size]byte
	read    stamps
}

// maxFile bounds the file, in bytes.
const maxFile = 16 << 20

// Proof is what every session of a roster has to have.
type Proof string

// Proofs.
const (
	AnyProof        Proof = "any"         // a password or a token, a certificate, or one of the former with it
	ProofPassword   Proof = "password"    // a password, and maybe a certificate
	ProofOfIdentity Proof = "certificate" // a certificate, and maybe a password or a token
	BothProofs      Proof = "both"
	ProofToken      Proof = "token" // a token that the grid judges, and maybe a certificate
)

// Cancel is when orders of a session are cancelled because its counterparty is gone.
type Cancel struct {
	Mode  string `json:"mode"`  // None, OnDisconnect, OnDisconnectOrLogout
	Grace string `json:"grace"` // how long it may be gone, such as 10s, the default; 1s to 60s
}

// Bounds of a grace: a gateway has to find a new primary meanwhile.
const (
	minGrace     = time.Second
	maxGrace     = order.MaxGraceMs * time.Millisecond
	defaultGrace = 10 * time.Second
)

// Check refuses a mode or a grace that there is not.
func (c *Cancel) Check() error {
	_, _, err := c.parse()
	return err
}

// parse returns the mode and the grace.
func (c *Cancel) parse() (mode fix.CancelMode, grace time.Duration, err error) {
	switch mode = fix.CancelMode(c.Mode); mode {
	case "None", "":
		if c.Mode == "" || c.Grace != "" {
			return "", 0, fmt.Errorf("cancelOnDisconnect has mode %q and grace %q, allowed: mode None without a grace, or OnDisconnect, OnDisconnectOrLogout", c.Mode, c.Grace)
		}
		return fix.CancelNever, 0, nil
	case fix.CancelOnLoss, fix.CancelOnLogout:
	default:
		return "", 0, fmt.Errorf("cancelOnDisconnect.mode is %.30q, allowed: None, OnDisconnect, OnDisconnectOrLogout", c.Mode)
	}
	if grace = defaultGrace; c.Grace != "" {
		if grace, err = time.ParseDuration(c.Grace); err != nil || grace < minGrace || grace > maxGrace {
			return "", 0, fmt.Errorf("cancelOnDisconnect.grace is %.30q, allowed: %s to %s", c.Grace, minGrace, maxGrace)
		}
	}
	return mode, grace, nil
}

// Options of a roster.
type Options struct {
	// Passwords is the directory that PasswordFile is relative to; set, nothing outside of it
	// is read. Empty: that of the file.
	Passwords string
	Proof     Proof // "": AnyProof
	// Cancel is that of sessions whose entry has none; nil: None.
	Cancel *Cancel
	// DropCopies are sessions of the file that get copies of the reports of others.
	DropCopies []DropCopy
}

// Load reads a file: {"sessions": [{...}, ...]}. A session has a password or a user of the
// grid, a certificate, or one of the former with a certificate: then both are needed to log on.
func Load(path string, o Options) (*Roster, error) {
	r := &Roster{byID: map[fix.ID]*Entry{}, options: o, path: path, read: stamps{}}
	info, err := r.read.stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s has %d bytes, allowed: %d", path, info.Size(), maxFile)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct {
		Sessions []Entry `json:"sessions"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(file.Sessions) == 0 {
		return nil, fmt.Errorf("%s: sessions is empty, allowed: at least one", path)
	}
	switch o.Proof {
	case "", AnyProof, ProofPassword, ProofOfIdentity, BothProofs, ProofToken:
	default:
		return nil, fmt.Errorf("the proof is %.20q, allowed: any, password, certificate, both, token", o.Proof)
	}
	r.entries = file.Sessions
	for i := range r.entries {
		if err := r.add(&r.entries[i]); err != nil {
			return nil, fmt.Errorf("%s: sessions[%d]: %w", path, i, err)
		}
	}
	if err := r.copies(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r.sum = r.sumOf()
	return r, nil
}

// Reload returns what the files have now: r itself if none has changed since it was loaded. Then it costs a look at the
// inode of each.
func (r *Roster) Reload() (*Roster, error) {
	if r.read.same() {
		return r, nil
	}
	now, err := Load(r.path, r.options)
	if err == nil && now.sum == r.sum {
		r.read = now.read
		return r, nil
	}
	return now, err
}

func (r *Roster) add(e *Entry) error {
	v, ok := fix.ParseVersion(e.Version)
	switch {
	case !ok:
		return fmt.Errorf("version is %.20q, allowed: FIX.4.2, FIX.4.4, FIXT.1.1 (FIX 5.0 SP2)", e.Version)
	case e.SenderCompID == "" || e.TargetCompID == "":
		return errors.New("senderCompID or targetCompID is empty, allowed: both set")
	case e.PasswordFile == "" && e.Certificate == "" && e.User == "":
		return errors.New("passwordFile, certificate and user are empty, allowed: passwordFile or user, certificate, or certificate with one of the former; a session without would be open to everybody")
	case e.PasswordFile != "" && e.User != "":
		return fmt.Errorf("user is %.100q beside passwordFile, allowed: one of them, since tag 554 is a token or a password", e.User)
	case e.PasswordFile != "" && e.Username == "":
		return errors.New("username is empty, allowed: a name with passwordFile")
	case len(e.Segment) > order.MaxSymbol:
		return fmt.Errorf("segment has %d bytes, allowed: a symbol of at most %d", len(e.Segment), order.MaxSymbol)
	}
	id := fix.ID{Version: v, Acceptor: e.TargetCompID, Initiator: e.SenderCompID}
	if r.byID[id] != nil {
		return fmt.Errorf("session %s is there twice, allowed: once", id)
	}
	if err := r.options.Proof.check(e); err != nil {
		return err
	}
	cancel := e.CancelOnDisconnect
	if cancel == nil {
		cancel = r.options.Cancel
	}
	if cancel != nil {
		var err error
		if e.mode, e.grace, err = cancel.parse(); err != nil {
			return err
		}
	}
	r.byID[id] = e
	if e.PasswordFile == "" {
		return nil
	}
	sum, err := r.password(e.PasswordFile)
	if err != nil {
		return fmt.Errorf("passwordFile: %w", err)
	}
	e.password = sum
	return nil
}

// check returns what an entry lacks.
func (p Proof) check(e *Entry) error {
	switch {
	case e.PasswordFile == "" && (p == ProofPassword || p == BothProofs):
		return fmt.Errorf("passwordFile is empty, allowed: a file, since every session has to have a password here (%s)", p)
	case e.User == "" && p == ProofToken:
		return fmt.Errorf("user is empty, allowed: a user of the grid, since every session has to have a token here (%s)", p)
	case e.Certificate == "" && (p == ProofOfIdentity || p == BothProofs):
		return fmt.Errorf("certificate is empty, allowed: a name, since every session has to have a certificate here (%s)", p)
	}
	return nil
}

// password returns the sum of the first line of a file that only its owner, and maybe its
// group, can read.
func (r *Roster) password(name string) (*[sha256.Size]byte, error) {
	path := name
	switch dir := r.options.Passwords; {
	case dir != "" && !filepath.IsLocal(name):
		return nil, fmt.Errorf("%q is not below the directory of the passwords, %s; allowed: the name of a file there", name, dir)
	case dir != "":
		path = filepath.Join(dir, name)
	case !filepath.IsAbs(name):
		path = filepath.Join(filepath.Dir(r.path), name)
	}
	info, err := r.read.stat(path)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o007 != 0 {
		return nil, fmt.Errorf("%s has mode %04o, allowed: none for others, such as 0600; every user of the machine can read it", path, mode)
	}
	if info.Size() > maxPassword {
		return nil, fmt.Errorf("%s has %d bytes, allowed: %d", path, info.Size(), maxPassword)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	line, _, _ := bytes.Cut(raw, []byte("\n"))
	if line = bytes.TrimRight(line, "\r"); len(line) == 0 {
		return nil, fmt.Errorf("the first line of %s is empty, allowed: a password", path)
	}
	sum := sha256.Sum256(line)
	return &sum, nil
}

// maxPassword bounds the file of a password, in bytes.
const maxPassword = 64 << 10

// sumOf identifies what was read: two rosters with the same one are the same.
func (r *Roster) sumOf() [sha256.Size]byte {
	h := sha256.New()
	for i := range r.entries {
		e := &r.entries[i]
		fmt.Fprintf(h, "%q %q %q %q %q %q %t %t %t %d %q %q %d %x\n", e.Version, e.SenderCompID, e.TargetCompID, e.Username, e.Certificate, e.User,
			e.ResetOnLogon, e.NextExpected, e.LastProcessed, e.ResendChunk, e.Segment, e.mode, e.grace, e.password)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// NeedsPassword reports whether a session has a password, which must not be sent in the
// clear.
func (r *Roster) NeedsPassword() bool {
	return slices.ContainsFunc(r.entries, func(e Entry) bool { return e.password != nil })
}

// NeedsCertificate reports whether a session needs a client's certificate.
func (r *Roster) NeedsCertificate() bool {
	return slices.ContainsFunc(r.entries, func(e Entry) bool { return e.Certificate != "" })
}

// Len returns how many sessions there are.
func (r *Roster) Len() int { return len(r.entries) }

// Profiles returns the sessions.
func (r *Roster) Profiles() (list []fix.Profile) {
	for id, e := range r.byID {
		list = append(list, fix.Profile{ID: id, ResetOnLogon: e.ResetOnLogon, NextExpected: e.NextExpected, LastProcessed: e.LastProcessed, ResendChunk: e.ResendChunk,
			CancelOnDisconnect: e.mode, CancelGrace: e.grace})
	}
	return list
}

// Authenticate decides about a logon: certificate is the verified one of the connection,
// nil without. The token of a session with a User is not looked at: that is for Proves.
func (r *Roster) Authenticate(id fix.ID, certificate *x509.Certificate, user, password []byte) error {
	e := r.byID[id]
	if e == nil {
		return fmt.Errorf("session %s is not in the file of sessions", id)
	}
	if e.Certificate != "" && (certificate == nil || certificate.Subject.CommonName != e.Certificate && !slices.Contains(certificate.DNSNames, e.Certificate)) {
		return fmt.Errorf("session %s: the certificate is not that of %q", id, e.Certificate)
	}
	if e.password != nil {
		sum := sha256.Sum256(password)
		right := subtle.ConstantTimeCompare(sum[:], e.password[:]) & subtle.ConstantTimeCompare(user, []byte(e.Username))
		if right != 1 {
			return fmt.Errorf("session %s: tags 553 (Username) and 554 (Password) are not those of the session", id)
		}
	}
	if e.User != "" && e.Username != "" && string(user) != e.Username {
		return fmt.Errorf("session %s: tag 553 (Username) is not that of the session", id)
	}
	return nil
}
