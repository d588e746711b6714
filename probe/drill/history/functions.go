package history

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Functions are those that a grid calls for orders, as its nodes told in the beginning and at the
// end, and what is there of them. Of a grid that calls none there are none.
type Functions struct {
	Pre    []string // they decide, in this order
	Sets   []uint32 // tags that they may set, the stamp with them
	Stamp  uint32   // the tag with the beginning of a chain; 0: there is none
	Chains []string // digests of all that decides; several: it was changed meanwhile
	Post   []PostFunction
	Unread []string // nodes that told nothing
	// Decided and Records are of each copy.
	Decided []Decided
	Records []Recorded
}

// PostFunction is one that logs have in force. Audit is one whose records are linked, and were
// compared with their entries. Changed is one that nodes told of in the beginning or at the end only.
type PostFunction struct {
	Name, SHA256   string
	Audit, Changed bool
}

// Decided are the values of Sets in the orders of the run that a copy has.
type Decided struct {
	Partition wire.PartitionID
	Where     string // as in Log
	InSync    bool
	Orders    int64
	Values    []SetValue // by tag and value
}

// SetValue is a value of a tag, and how many orders have it; "" is none.
type SetValue struct {
	Tag    uint32
	Value  string
	Orders int64
}

// Recorded are the records of functions of kind Post that a copy holds of the entries of the run.
type Recorded struct {
	Partition wire.PartitionID
	Where     string
	InSync    bool
	From      uint64 // the first entry of which records are held
	Through   uint64
	Records   []Record
	Begun     []Begun // changes of functions in its log meanwhile, where there is an audit trail
	Error     string  // they could not be read to their end
}

// Begun is an entry of a log behind which these functions of kind Post were in force, and no others.
// Of a change that had begun before the log was read there are none.
type Begun struct {
	Entry uint64
	Post  []PostFunction
}

// Record of an entry.
type Record struct {
	Entry    uint64
	Function string
	Fault    string // why the call failed, "" if it did not
	Sum      uint64 // of its bytes
	Link     Link
}

// Link is how a record of an audit trail hangs on the one before.
type Link uint8

// Links.
const (
	NoLink Link = iota // of another function
	Anchor             // the first that is held, one with which the function begins anew, or one behind a failed call
	Linked             // its hash is of the one before, the entry's number, time and message
	Broken             // it is not
)

func (f *Functions) check() error {
	if f == nil {
		return nil
	}
	for i := range f.Records {
		x := &f.Records[i]
		for k := range x.Records {
			if r := &x.Records[k]; r.Link > Broken || k > 0 && r.Entry < x.Records[k-1].Entry {
				return fmt.Errorf("history: %s: a record of entry %d with link %d: out of range or order", x.Where, r.Entry, r.Link)
			}
		}
	}
	return nil
}
