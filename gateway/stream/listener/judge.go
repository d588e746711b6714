package listener

import (
	"crypto/sha256"
	"fmt"

	"github.com/ordergrid/ordergrid/gateway/judge"
	"github.com/ordergrid/ordergrid/gateway/stream/server"
	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// proved is the identity of a client that is known by a token of the grid: the token, and what its holder was given.
type proved struct {
	proof *judge.Proof
	given [sha256.Size]byte
}

// grantOf is what the holder of a token may read: what the file has for the user, or all with the permission Watch.
func (a *Access) grantOf(p *judge.Proof) (*server.Grant, error) {
	g := &server.Grant{Client: p.User, Topics: readable(access.Permissions(p.May))}
	if e := a.known.Load().byUser[p.User]; e != nil {
		g.Client, g.Topics, g.Publish = e.Name, e.grant.Topics, e.grant.Publish
	} else if p.May&wire.MayWatch == 0 {
		return nil, fmt.Errorf("%.100s is not in the file of clients and has no permission Watch", p.User)
	}
	g.Identity = proved{p, sha256.Sum256(fmt.Appendf(nil, "%q %q %q", g.Client, g.Topics, g.Publish))}
	return g, nil
}

// keepsProved reports whether a client would get the same rights for its token now.
func (a *Access) keepsProved(id proved) bool {
	if !a.tokens.Keeps(id.proof) {
		return false
	}
	g, err := a.grantOf(id.proof)
	return err == nil && g.Identity == id
}

// byProof returns the grant of a token that the grid has accepted before. server.ErrUndecided: it has to be asked.
func (a *Access) byProof(sum judge.Sum) (*server.Grant, error) {
	if a.tokens == nil {
		return nil, judge.ErrToken
	}
	if p := a.tokens.Known(sum); p != nil {
		return a.grantOf(p)
	}
	return nil, server.ErrUndecided
}

// ask has the grid judge a token; decided is called once, from another goroutine. false: too many are being judged.
func (a *Access) ask(token string, decided func(*server.Grant, error)) bool {
	return a.tokens.Judge(token, func(p *judge.Proof, err error) {
		if err != nil {
			decided(nil, err)
			return
		}
		decided(a.grantOf(p))
	})
}
