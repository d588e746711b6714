package fix

import (
	"fmt"
	"slices"
	"strings"
)

// Home is where a session is in a grid, and what it is there.
type Home struct {
	Segment   string // a symbol: the session is in the partition that trades it; "": in one that its names choose
	Partition int    // of a drop copy: the number of its partition, -1 for none
	DropCopy  bool   // it enters no orders, and gets copies of the reports of Sources
	Sources   []Source
}

// Source is a session of whose reports there are copies.
type Source struct {
	ID
	Segment string
}

// Equal reports whether two homes are the same.
func (h *Home) Equal(o *Home) bool {
	return h.Segment == o.Segment && h.Partition == o.Partition && h.DropCopy == o.DropCopy && slices.Equal(h.Sources, o.Sources)
}

// ParseID reads the text form of an id, for example FIX.4.4:BANK->GRID.
func ParseID(text string) (ID, error) {
	version, rest, colon := strings.Cut(text, ":")
	initiator, acceptor, arrow := strings.Cut(rest, "->")
	v, known := ParseVersion(version)
	if !colon || !arrow || !known || initiator == "" || acceptor == "" {
		return ID{}, fmt.Errorf("session is %.100q, allowed: version, SenderCompID and TargetCompID of the counterparty, such as FIX.4.4:BANK->GRID", text)
	}
	return ID{Version: v, Acceptor: acceptor, Initiator: initiator}, nil
}
