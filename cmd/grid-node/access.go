package main

import (
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/kube"
	"github.com/ordergrid/ordergrid/grid-node/node"
)

// accessFlags configure the authorization of clients.
type accessFlags struct{ rules, audience string }

// defaultAudience is the audience of tokens unless the grid has its own.
const defaultAudience = "ordergrid.dev"

func (f *accessFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.rules, "authorization", "", "JSON file of authorization rules (submit, read, administer); with it clients must authenticate, which requires --tls-cert. Reloaded when it changes. Without: every client may do everything")
	fl.StringVar(&f.audience, "token-audience", defaultAudience, "audience that clients' tokens must have; tokens are reviewed by the API server, with --arbiter=kube only")
}

// apply reads the rules. Without an API server (api is nil) clients have certificates.
func (f *accessFlags) apply(cfg *node.Config, api *rest.Config) error {
	if f.rules == "" {
		return nil
	}
	cfg.Access = &node.Access{Rules: access.Open(f.rules)}
	if api == nil {
		return nil
	}
	reviewer, err := kube.NewTokens(api, f.audience)
	if err != nil {
		return err
	}
	cfg.Access.Tokens = access.NewTokens(reviewer, f.audience, access.Limits{})
	return nil
}
