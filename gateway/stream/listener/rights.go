package listener

import (
	"crypto/x509"

	"github.com/ordergrid/ordergrid/gateway/stream/server"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/access"
)

// everything is what the permission Watch allows, and withRegions what Watch and Read do, as in the grid.
var (
	everything  = mustPatterns(Orders+".>", Executions+".>", Books+".>", Downstream+".>", server.StatusTopic)
	withRegions = append(mustPatterns(Regions+".>"), everything...)
)

func mustPatterns(list ...string) (out []topics.Pattern) {
	for _, text := range list {
		p, err := topics.ParsePattern(text)
		if err != nil {
			panic(err)
		}
		out = append(out, p)
	}
	return out
}

// readable is what a client may read by its permissions in the grid, which have Watch.
func readable(may access.Permissions) []topics.Pattern {
	if may&access.Read == 0 {
		return everything
	}
	return withRegions
}

// ruled is the identity of a client that the rules let in, and those of its permissions that say what it may read.
type ruled struct {
	*access.Identity
	may access.Permissions
}

func (a *Access) ruled(id *access.Identity) ruled {
	return ruled{id, a.rules.Rules().Of(id) & (access.Watch | access.Read)}
}

// byRules returns what the rules of nodes allow: with the permission Watch, which lets a client follow the log, all topics
// of orders, executions, books and positions of sinks, and with Read too those of regions.
func (a *Access) byRules(cert *x509.Certificate) *server.Grant {
	if a.rules == nil {
		return nil
	}
	id := a.ruled(access.OfCertificate(cert, false))
	if id.may&access.Watch == 0 {
		return nil
	}
	return &server.Grant{Client: id.Name(), Topics: readable(id.may), Identity: id}
}
