// Package tlsflag is the command line of TLS on the data port: the same flags for grid nodes and for whatever talks to
// them.
package tlsflag

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/secure"
)

// Flags are the files and what they are for.
type Flags struct {
	files  secure.Files
	client bool // a certificate is not always needed
	token  string
}

// Register adds the flags of both ends. effect completes "with it …".
func (f *Flags) Register(set *pflag.FlagSet, effect string) {
	set.StringVar(&f.files.Cert, "tls-cert", "", "PEM file of the certificate to present, for server and client; with it "+effect+". Read again when it changes")
	set.StringVar(&f.files.Key, "tls-key", "", "PEM file of its private key")
	set.StringVar(&f.files.CA, "tls-ca", "", "PEM file of the authorities that the other end's certificate has to be of")
	set.StringVar(&f.files.Name, "tls-name", "", "DNS name in the certificates of all nodes; default: each is for the address it is dialled at")
}

// DefaultName is --tls-name, where that is not given and other files are.
func (f *Flags) DefaultName(name string) {
	if f.files != (secure.Files{}) && f.files.Name == "" {
		f.files.Name = name
	}
}

// RegisterToken adds the flag of clients that prove by a token who they are. Of the
// files --tls-ca is then enough: whether a certificate is needed, the grid knows.
func (f *Flags) RegisterToken(set *pflag.FlagSet) {
	f.client = true
	set.StringVar(&f.token, "token-file", "", "file with a token that says who you are, where the grid asks for that, read anew for each connection: for example what \"kubectl create token ACCOUNT --audience ordergrid.dev\" prints; of --tls-cert, --tls-key and --tls-ca it takes the last one only")
}

// Token is for client.Config.Token; nil without.
func (f *Flags) Token() client.TokenSource {
	if f.token == "" {
		return nil
	}
	return client.TokenFile(f.token)
}

// RegisterServer adds those of a node only.
func (f *Flags) RegisterServer(set *pflag.FlagSet) {
	set.StringVar(&f.files.ClientCA, "tls-client-ca", "", "PEM file of further authorities that the certificate of a client, not of a node, may be of")
	set.StringVar((*string)(&f.files.ClientAuth), "tls-client-auth", "", "what clients have to present: require (a certificate, default) or none; nodes always present one")
}

// Given says whether TLS is wanted; an error if only part of it was said.
func (f *Flags) Given() (bool, error) {
	given := f.files != (secure.Files{}) || f.token != ""
	if f.client && f.files.Cert == "" && f.files.Key == "" && f.files.CA != "" {
		return true, nil
	}
	for _, x := range []struct{ flag, value string }{{"tls-cert", f.files.Cert}, {"tls-key", f.files.Key}, {"tls-ca", f.files.CA}} {
		if given && x.value == "" {
			return false, fmt.Errorf(`--%s: value "", allowed: a PEM file; --tls-cert, --tls-key and --tls-ca go together`, x.flag)
		}
	}
	return given, nil
}

// Load reads the files, for a node; nil without.
func (f *Flags) Load() (*secure.Identity, error) {
	given, err := f.Given()
	if err != nil || !given {
		return nil, err
	}
	id, err := secure.Load(f.files)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key, --tls-ca, --tls-client-ca, --tls-client-auth: %w", err)
	}
	return id, nil
}

// Client is for client.Config.TLS; nil without.
func (f *Flags) Client() (client.TLS, error) {
	given, err := f.Given()
	if err != nil || !given {
		return nil, err
	}
	if f.files.Cert == "" {
		return client.TLSAuthority(f.files.CA, f.files.Name), nil
	}
	return client.TLSFiles(f.files), nil
}
