package client

import (
	"bytes"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Route is the partition that a FIX message belongs to: the hash of its ClOrdID, of its
// Symbol where the grid matches, modulo the number of the grid's partitions, and so the
// same one for all of the grid's life. The message is not validated; the node does that.
func (c *Client) Route(fix []byte) (wire.PartitionID, error) {
	if c.BySymbol() {
		symbol := valueOf(fix, symbolTag)
		if len(symbol) == 0 {
			return 0, &RejectError{Code: wire.CodeBadFIX, Tag: 55, Text: "not sent: the message has no Symbol to route by"}
		}
		return c.RouteClOrdID(symbol), nil
	}
	id := clOrdID(fix)
	if len(id) == 0 {
		return 0, &RejectError{Code: wire.CodeBadFIX, Tag: 11, Text: "not sent: the message has no ClOrdID to route by"}
	}
	return c.RouteClOrdID(id), nil
}

// BySymbol reports whether orders go to the partition of their Symbol (tag 55): the grid's
// nodes have said so, as those of a grid that matches do, or Config.BySymbol does.
func (c *Client) BySymbol() bool { return c.cfg.BySymbol || c.table.Load().symbol }

// RouteClOrdID is the partition an order with this ClOrdID belongs to, or the one of a
// symbol where BySymbol is true.
func (c *Client) RouteClOrdID(id []byte) wire.PartitionID {
	return wire.PartitionID(order.HashClOrdID(id) % uint64(len(c.table.Load().parts)))
}

var clOrdIDTag, symbolTag = []byte("\x0111="), []byte("\x0155=")

// clOrdID finds the value of tag 11 without parsing the rest; nil if there is
// none. A message that hides "11=" in a data field can be routed to another
// partition than its ClOrdID belongs to; GetByClOrdID asks the others too.
func clOrdID(fix []byte) []byte { return valueOf(fix, clOrdIDTag) }

func valueOf(fix, tag []byte) []byte {
	i := bytes.Index(fix, tag)
	if i < 0 {
		return nil
	}
	value := fix[i+len(tag):]
	if end := bytes.IndexByte(value, 1); end >= 0 {
		return value[:end]
	}
	return nil
}
