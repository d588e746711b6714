// Package tlsflag has the TLS flags of the data port: the same for grid nodes and for their
// clients.
package tlsflag

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/secure"
)

// Flags are the files and their use.
type Flags struct {
	files  secure.Files
	client bool // a certificate is not always needed
	token  string
	prefix string
}

// Of returns flags whose names begin with a prefix, for a program that speaks to several grids.
func Of(prefix string) Flags { return Flags{prefix: prefix} }

// OptionalCertificate has --tls-ca alone be enough: the other end decides whether a certificate is needed.
func (f *Flags) OptionalCertificate() { f.client = true }

func (f *Flags) name(flag string) string { return f.prefix + flag }

// Register adds the flags of both ends. effect completes "with it …".
func (f *Flags) Register(set *pflag.FlagSet, effect string) {
	set.StringVar(&f.files.Cert, f.name("tls-cert"), "", "PEM file of the certificate to present, for server and client; with it "+effect+". Reloaded when it changes")
	set.StringVar(&f.files.Key, f.name("tls-key"), "", "PEM file of its private key")
	set.StringVar(&f.files.CA, f.name("tls-ca"), "", "PEM file of the authorities that must have signed the other end's certificate")
	set.StringVar(&f.files.Name, f.name("tls-name"), "", "DNS name in the certificates of all nodes; default: each is for the address it is dialled at")
}

// DefaultName is --tls-name, where that is not given and other files are.
func (f *Flags) DefaultName(name string) {
	if f.files != (secure.Files{}) && f.files.Name == "" {
		f.files.Name = name
	}
}

// RegisterToken adds the flag of clients that authenticate by a token. Then --tls-ca is enough: the
// grid decides whether a certificate is needed.
func (f *Flags) RegisterToken(set *pflag.FlagSet) {
	f.client = true
	set.StringVar(&f.token, f.name("token-file"), "", "file with a token to authenticate with, where the grid requires it, read anew for each connection: for example the output of \"kubectl create token ACCOUNT --audience ordergrid.dev\"; of --tls-cert, --tls-key and --tls-ca only the last one is needed")
}

// Token is for client.Config.Token; nil without.
func (f *Flags) Token() client.TokenSource {
	if f.token == "" {
		return nil
	}
	return client.TokenFile(f.token)
}

// RegisterServer adds the flags of nodes only.
func (f *Flags) RegisterServer(set *pflag.FlagSet) {
	set.StringVar(&f.files.ClientCA, "tls-client-ca", "", "PEM file of further authorities for certificates of clients, not of nodes")
	set.StringVar((*string)(&f.files.ClientAuth), "tls-client-auth", "", "what clients have to present: require (a certificate, default) or none; nodes always present one")
}

// Args are the flags that were given, for another program that speaks to the same grid and has them without a prefix.
func (f *Flags) Args() (args []string) {
	for _, x := range []struct{ flag, value string }{{"--tls-cert", f.files.Cert}, {"--tls-key", f.files.Key}, {"--tls-ca", f.files.CA},
		{"--tls-name", f.files.Name}, {"--token-file", f.token}} {
		if x.value != "" {
			args = append(args, x.flag, x.value)
		}
	}
	return args
}

// Given reports whether TLS is requested; an error if the flags are incomplete.
func (f *Flags) Given() (bool, error) {
	given := f.files != (secure.Files{}) || f.token != ""
	if f.client && f.files.Cert == "" && f.files.Key == "" && f.files.CA != "" {
		return true, nil
	}
	for _, x := range []struct{ flag, value string }{{f.name("tls-cert"), f.files.Cert}, {f.name("tls-key"), f.files.Key}, {f.name("tls-ca"), f.files.CA}} {
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

// Authority is Client without the certificate: for connections in the name of others, by their
// tokens. nil without TLS.
func (f *Flags) Authority() (client.TLS, error) {
	given, err := f.Given()
	if err != nil || !given {
		return nil, err
	}
	return client.TLSAuthority(f.files.CA, f.files.Name), nil
}
