package access

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Permissions is a set of permissions. The bits are those of wire.Authenticated.
type Permissions uint16

// The permissions. None implies another.
const (
	Submit = Permissions(wire.MaySubmit) // open sessions, submit orders
	Read   = Permissions(wire.MayRead)   // read an order by its id or ClOrdID
	Admin  = Permissions(wire.MayAdmin)  // read the whole log and the sink's files
	Watch  = Permissions(wire.MayWatch)  // follow the log as it grows
	Sink   = Permissions(wire.MaySink)   // be a reader of the configuration, for which the log is held
	Link   = Permissions(wire.MayLink)   // send the log of another site, in the name of all its clients
	Query  = Permissions(wire.MayQuery)  // ask questions about all orders
	// Gateway: speak for every FIX session.
	Gateway = Permissions(wire.MayGateway)
	// Write: change regions.
	Write = Permissions(wire.MayWrite)
	// Risk: the kill switch, and the limits in force.
	Risk = Permissions(wire.MayRisk)
	All  = Submit | Read | Admin | Watch | Sink | Link | Query | Gateway | Risk | Write
)

var permissionNames = [...]struct {
	p    Permissions
	name string
}{{Submit, "Submit"}, {Read, "Read"}, {Admin, "Admin"}, {Watch, "Watch"}, {Sink, "Sink"}, {Link, "Link"}, {Query, "Query"}, {Gateway, "Gateway"}, {Risk, "Risk"}, {Write, "Write"}}

// String returns the names, as in spec.security.authorization: "Submit, Read"; "none".
func (p Permissions) String() string {
	var names []string
	for _, n := range permissionNames {
		if p&n.p != 0 {
			names = append(names, n.name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func parsePermission(s string) (Permissions, error) {
	for _, n := range permissionNames {
		if s == n.name {
			return n.p, nil
		}
	}
	return 0, fmt.Errorf("permission is %.40q, allowed: %s", s, All)
}

// Each lists the permissions one by one.
func Each() (all []Permissions) {
	for _, n := range permissionNames {
		all = append(all, n.p)
	}
	return all
}

// Needs returns the permission that a client's request of type t requires; 0 if any
// permission will do.
func Needs(t wire.Type) Permissions { return Permissions(wire.Row(t).Needs) }
