package node

import (
	"crypto/sha256"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// inForce is what is derived from the text of a profile, kept because it is asked for often.
type inForce struct {
	text         []byte
	name, sha256 string
	empty        bool
}

// of computes it if the text is another one. A text is never changed in place.
func (f *inForce) of(text []byte) *inForce {
	if len(text) == len(f.text) && (len(text) == 0 || &text[0] == &f.text[0]) {
		return f
	}
	*f = inForce{text: text}
	if len(text) > 0 {
		f.sha256 = fmt.Sprintf("%x", sha256.Sum256(text))
		if p, err := limits.ParseProfile(text); err == nil { // it was parsed before
			f.name, f.empty = p.Name, p.Empty()
		}
	}
	return f
}

// limitsInForce is the state of the limits for the page of the memory; nil in a node without
// a file of limits whose logs have none. On the loop.
func (ps *partitions) limitsInForce() *nodestatus.Limits {
	s := &nodestatus.Limits{SHA256: ps.profile.known.of(ps.profile.text).sha256, Error: ps.profile.failed}
	some := ps.cfg.LimitsFile != ""
	for _, p := range ps.list {
		if p.status.Role != replica.RolePrimary && p.status.Role != replica.RoleBackup {
			continue
		}
		some = some || p.replica.Guard().Limited()
		text, at, kills := p.replica.Limits()
		f := p.inForce.of(text)
		row := nodestatus.PartitionLimits{Partition: p.id.String(), Name: f.name, SHA256: f.sha256, Empty: f.empty, Entry: at.Entry, SinceUnixNs: at.TimeNs, Kills: kills}
		if p.status.Role == replica.RolePrimary {
			row.Refused, row.Waits = p.replica.ProfileRefused(), p.replica.ProfileWaits()
		}
		s.Partitions = append(s.Partitions, row)
	}
	if !some {
		return nil
	}
	return s
}
