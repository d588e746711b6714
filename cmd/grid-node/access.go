package main

import (
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/arbiter/kube"
	"github.com/ordergrid/ordergrid/grid-node/node"
)

// accessFlags say who may do what.
type accessFlags struct{ rules, audience string }

// defaultAudience is what tokens are for unless the grid has an audience of its own.
const defaultAudience = "ordergrid.dev"

func (f *accessFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.rules, "authorization", "", "JSON file of rules, who may submit, read, administer; with it clients have to prove who they are, which takes --tls-cert. Read again when it changes. Without: every client may do everything")
	fl.StringVar(&f.audience, "token-audience", defaultAudience, "audience that clients' tokens have to be for; tokens are looked at by the API server, with --arbiter=kube only")
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
