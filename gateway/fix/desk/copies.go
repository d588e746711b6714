package desk

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Drop copies, docs/adr/0089: a session that gets copies of the reports of others, its sources,
// tells the grid of which, after its Logon. The grid numbers the copies, and sends them as reports.

// sources encodes those of the sources that are in a partition; err: they are too many.
func (d *Desk) sources(p wire.PartitionID, list []fix.Source) (encoded []byte, err error) {
	return encodeSources(p, slices.DeleteFunc(slices.Clone(list), func(s fix.Source) bool { return d.route(s.ID, s.Segment) != p }))
}

func encodeSources(p wire.PartitionID, list []fix.Source) (encoded []byte, err error) {
	type source struct {
		id   client.FixSession
		name string
	}
	var here []source
	for _, s := range list {
		here = append(here, source{client.FixSessionOf(s.Version.String(), s.Initiator, s.Acceptor), s.Acceptor + "\x01" + s.Initiator})
	}
	if len(here) > order.MaxCopySources {
		return nil, fmt.Errorf("the drop copy has %d sessions in partition %s, allowed: %d; name fewer, and the others in another drop copy", len(here), p, order.MaxCopySources)
	}
	slices.SortFunc(here, func(a, b source) int { return cmp.Or(cmp.Compare(a.id[0], b.id[0]), cmp.Compare(a.id[1], b.id[1])) })
	for _, s := range here {
		encoded = order.AppendSource(encoded, s.id, s.name)
	}
	return encoded, nil
}

// getsCopies refuses the logon if the session cannot get the copies that it is to get.
func (x *door) getsCopies(now fix.Now, known uint8) bool {
	switch {
	case !x.target:
		return true
	case known == 0:
		x.f.NotOpened(fix.LogonNoGrid, errors.New("drop copies are not in force: the node is of a release before; allowed: when all nodes are updated"))
		return false
	}
	x.naming, x.unnamed = true, unnamed{since: now.Mono}
	return true
}

// unnamed is what is known of sources that the grid was not told of yet.
type unnamed struct {
	since int64  // Mono
	why   string // the grid refused them last, "" if it did not
	told  bool   // that it takes long
}

// namingLong is how long a session may be without copies before that is said.
const namingLong = int64(5e9)

// lookNamed says that a session gets no copies yet.
func (x *door) lookNamed(now fix.Now) {
	u := &x.unnamed
	if !x.naming || u.told || now.Mono-u.since < namingLong {
		return
	}
	u.told = true
	why := u.why
	if why == "" {
		why = "no answer"
	}
	x.d.cfg.Logger.Warn("the session gets no drop copies yet: the grid has not taken whose reports it is to get; it is asked again",
		"session", x.f.ID().String(), "partition", x.l.id.String(), "reason", why)
}

// notNamed notes why the grid does not take them.
func (x *door) notNamed(request uint64, why string) {
	if x.naming && x.named == request {
		x.unnamed.why = why
	}
}

// wereNamed is the answer: from the entry on there are copies, or they were there before.
func (x *door) wereNamed(entry uint64) {
	x.naming, x.named, x.unnamed = false, 0, unnamed{}
	x.d.cfg.Logger.Info("the session gets drop copies", "session", x.f.ID().String(), "id", fmt.Sprintf("%016x%016x", x.id[0], x.id[1]),
		"partition", x.l.id.String(), "slot", x.slot, "sources", order.CountSources(x.sources), "entry", entry)
}

// nameSources tells the grid of which sessions there are copies.
func (x *door) nameSources() {
	if !x.naming || x.named != 0 {
		return
	}
	l := x.l
	x.named = l.next()
	l.asking[x.named] = x
	l.out = wire.AppendFixStep(l.out, l.id, &wire.FixStep{ReqID: x.named, Epoch: l.epoch, Records: []wire.FixStepRecord{x.record(wire.FixStepCopies, 0, x.in, x.base, x.sources)}})
}

// copied makes the copy of a report: as that of its source, in the version of this session, with
// the CompIDs that it had in tags 115 and 128.
func (x *former) copied(v fix.Version, at place, c *order.DropCopy) fix.Sent {
	var m fix.Sent
	if c.Op == order.DropCopyOrder {
		m = x.order(v, at, c.Body)
	} else {
		m = x.refusal(v, at, c.Body)
	}
	from, to := string(c.Name), ""
	if i := slices.Index(c.Name, 1); i >= 0 {
		from, to = string(c.Name[:i]), string(c.Name[i+1:])
	}
	x.copy.Reset()
	x.copy.String(115, from) // OnBehalfOfCompID
	x.copy.String(128, to)   // DeliverToCompID
	x.copy.Append(m.Body)
	x.copy.Byte(797, 'Y') // CopyMsgIndicator
	m.Body = x.copy.Fields()
	return m
}
