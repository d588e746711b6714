package listener

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/server"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// puts of a partition wait at most for its goroutine, which hands them to the client.
const puts = 1024

// regionPut is a message of a client that is to be an entry of a region.
type regionPut struct {
	region     string
	key, value []byte
	stored     func(server.Stored, error)
}

// replicate is server.Config.Replicate: the message is put into the region of its topic, region.{name}.{key}.
func (g *generation) replicate(topic, data []byte, stored func(server.Stored, error)) error {
	tokens := strings.Split(string(topic), ".")
	if len(tokens) != 3 || !order.IsRegionName(tokens[1]) || tokens[2] == "%" {
		return fmt.Errorf("topic of publish is %.80q, allowed: %s.NAME.KEY, with a key of one token that is not empty", topic, Regions)
	}
	key, ok := topics.ReadToken(tokens[2])
	c := g.l.cfg.Client
	switch {
	case g.matches():
		return fmt.Errorf("topic of publish is %.80q, allowed: those of clients: a grid that matches has no regions", topic)
	case !names(g.l.cfg.PublishRegions, tokens[1]):
		return fmt.Errorf("topic of publish is %.80q, allowed: those of regions that the gateway puts into (--websocket-publish-regions)", topic)
	case !ok || len(key)+len(data) > order.MaxRegionPair:
		return fmt.Errorf("%w: key and data have %d bytes, allowed: at most %d", fanout.ErrLimit, len(key)+len(data), order.MaxRegionPair)
	}
	at := int(c.RouteClOrdID(key))
	if at >= len(g.parts) {
		return fmt.Errorf("%w: topic of publish %.80q is of a partition that is not known yet, allowed: try again", fanout.ErrLimit, topic)
	}
	p := g.parts[at]
	select {
	case p.puts <- &regionPut{tokens[1], key, data, stored}:
		return nil
	default:
		return fmt.Errorf("%w: messages for %s that wait are %d, allowed: %d; publish again later", fanout.ErrLimit, p.id, puts, puts)
	}
}

// put hands messages to the client, in their order, until ctx ends: then the server ends too, and answers none.
func (p *partition) put(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case x := <-p.puts:
			err := p.g.l.cfg.Client.Region(x.region).PutAsync(x.key, x.value, func(r client.Receipt, err error) {
				x.stored(server.Stored{Partition: int(r.Partition), At: fanout.Position{Seq: r.Seq}}, outcome(err))
			})
			if err != nil {
				x.stored(server.Stored{}, outcome(err))
			}
		}
	}
}

// outcome reports whether a message that is not acknowledged may be there. A put is sent again by the client, in its session,
// until it is answered or its time is over; what a node refuses for load is for the one who publishes to repeat.
func outcome(err error) error {
	switch {
	case err == nil:
		return nil
	case client.FateOf(err) == client.FateUnknown:
		return fmt.Errorf("%w: %w", server.ErrOutcome, err)
	case errors.Is(err, client.ErrNotPermitted):
		return fmt.Errorf("%w: the gateway takes the permissions Submit and Write in the grid: %w", server.ErrNotStored, err)
	case errors.Is(err, client.ErrWindowFull), errors.Is(err, client.ErrOverloaded):
		return fmt.Errorf("%w: %w: publish again later", server.ErrNotStored, err)
	}
	return fmt.Errorf("%w: %w", server.ErrNotStored, err)
}
