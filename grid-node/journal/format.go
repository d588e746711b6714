package journal

import (
	"encoding/json"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// formatVersion is that of the files. A file of another version is refused.
const formatVersion = 1

// Identity is whose log a journal holds.
type Identity struct {
	Grid      string
	Partition uint32
	Boot      uint64 // boot id of the member
	Life      uint64 // how many processes had the journal, this one included; 1 for the first
}

// head is the first record of a file.
type head struct {
	Version   int
	Grid      string
	Partition uint32
	Boot      uint64
	Life      uint64
	Seq       uint64 // of a segment: the last entry before it. Of a state file: the last entry that is in the state
	Hash      uint64 // of that entry
}

func (i *Identity) head(seq, hash uint64) []byte {
	b, err := json.Marshal(head{formatVersion, i.Grid, i.Partition, i.Boot, i.Life, seq, hash})
	if err != nil {
		panic(err) // it has nothing that cannot be marshalled
	}
	return b
}

// readHead returns the head of a file, false if it has no whole one.
func readHead(file []byte) (h head, next int64, ok bool, err error) {
	k, payload, next, ok := record(file, 0)
	if !ok || k != kindHead {
		return h, 0, false, nil
	}
	if err := json.Unmarshal(payload, &h); err != nil {
		return h, 0, true, fmt.Errorf("head: %w", err)
	}
	if h.Version != formatVersion {
		return h, 0, true, fmt.Errorf("format version is %d, allowed: %d; start the release that wrote it, or move the journal away", h.Version, formatVersion)
	}
	return h, next, true, nil
}

type member struct {
	ID      string
	Address string
}

// config is a configuration as a journal has it: without what comes from the spec.
type config struct {
	Version  string
	Epoch    uint64
	Lineage  uint64
	ChangeID string
	Primary  member
	InSync   []member
	Standby  bool   `json:",omitempty"`
	Term     uint64 `json:",omitempty"`
}

func encodeConfig(c *replica.Config) []byte {
	of := func(m *replica.Member) member { return member{m.ID, m.Address} }
	rec := config{Version: c.Version, Epoch: c.Epoch, Lineage: c.Lineage, ChangeID: c.ChangeID, Primary: of(&c.Primary), Standby: c.Standby, Term: c.Term}
	for i := range c.InSync {
		rec.InSync = append(rec.InSync, of(&c.InSync[i]))
	}
	b, err := json.Marshal(rec)
	if err != nil {
		panic(err) // strings and numbers
	}
	return b
}

func decodeConfig(b []byte) (*replica.Config, error) {
	var rec config
	if err := json.Unmarshal(b, &rec); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	c := &replica.Config{Version: rec.Version, Epoch: rec.Epoch, Lineage: rec.Lineage, ChangeID: rec.ChangeID, Standby: rec.Standby, Term: rec.Term}
	var err error
	if c.Primary, err = replica.NewMember(rec.Primary.ID, rec.Primary.Address); err != nil {
		return nil, fmt.Errorf("configuration of epoch %d: %w", rec.Epoch, err)
	}
	for _, m := range rec.InSync {
		known, err := replica.NewMember(m.ID, m.Address)
		if err != nil {
			return nil, fmt.Errorf("configuration of epoch %d: %w", rec.Epoch, err)
		}
		c.InSync = append(c.InSync, known)
	}
	return c, nil
}

// statePart is the header of a part of the state.
const statePartHeader = 8

func segmentName(n uint64) string { return fmt.Sprintf("%020d.log", n) }
func stateName(seq uint64) string { return fmt.Sprintf("%020d.state", seq) }

// numberOf returns the number in a file's name.
func numberOf(name, suffix string) (n uint64, ok bool) {
	if len(name) != 20+len(suffix) || name[20:] != suffix {
		return 0, false
	}
	for _, c := range []byte(name[:20]) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}
