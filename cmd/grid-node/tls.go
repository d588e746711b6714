package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/grid-node/secure"
)

// tlsFlags are the same for nodes and for what talks to them.
type tlsFlags struct{ files secure.Files }

func (f *tlsFlags) add(fl *pflag.FlagSet, effect string) {
	fl.StringVar(&f.files.Cert, "tls-cert", "", "PEM file of the certificate to present, for server and client; with it "+effect+". Read again when it changes")
	fl.StringVar(&f.files.Key, "tls-key", "", "PEM file of its private key")
	fl.StringVar(&f.files.CA, "tls-ca", "", "PEM file of the authorities that the other end's certificate has to be of")
	fl.StringVar(&f.files.Name, "tls-name", "", "DNS name in the certificates of all nodes; default: each is for the address it is dialled at")
}

// given says whether TLS is wanted; an error if only part of it was said.
func (f *tlsFlags) given() (bool, error) {
	given := f.files != (secure.Files{})
	for _, x := range []struct{ flag, value string }{{"tls-cert", f.files.Cert}, {"tls-key", f.files.Key}, {"tls-ca", f.files.CA}} {
		if given && x.value == "" {
			return false, fmt.Errorf(`--%s: value "", allowed: a PEM file; --tls-cert, --tls-key and --tls-ca go together`, x.flag)
		}
	}
	return given, nil
}

// load reads the files; nil without.
func (f *tlsFlags) load() (*secure.Identity, error) {
	given, err := f.given()
	if err != nil || !given {
		return nil, err
	}
	id, err := secure.Load(f.files)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key, --tls-ca: %w", err)
	}
	return id, nil
}
