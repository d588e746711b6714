package service

import (
	"slices"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/gateway/fix"
)

// reasons are all that a logon can be refused for; each has its series from the start.
var reasons = []fix.LogonReason{
	fix.LogonGarbled, fix.LogonNotFirst, fix.LogonUnknownSession, fix.LogonInUse, fix.LogonFields, fix.LogonTime, fix.LogonCredentials, fix.LogonNotJudged,
	fix.LogonSequence, fix.LogonNoGrid, fix.LogonTimeout, fix.LogonClosed, logonFull, logonStopping,
}

// recent is for how long a refusal is in status: longer than engines wait between attempts.
const recent = 5 * time.Minute

// maxText bounds the text of a refusal in status.
const maxText = 300

// Refusal is in status: logons that were refused for one reason within the last five minutes.
type Refusal struct {
	Reason  fix.LogonReason `json:"reason"`
	Count   uint64          `json:"count"`             // since Since
	Session string          `json:"session,omitempty"` // the last one; empty: of no session of the file
	Text    string          `json:"text"`              // what was wrong with the last one, and what is allowed
	Since   time.Time       `json:"since"`             // of the first one, without five minutes between two
	Last    time.Time       `json:"last"`
}

// refusals counts on the loop.
type refusals struct {
	total map[fix.LogonReason]uint64
	last  map[fix.LogonReason]*Refusal
}

func (r *refusals) add(now time.Time, why fix.LogonReason, id fix.ID, err error) {
	if r.total == nil {
		r.total, r.last = map[fix.LogonReason]uint64{}, map[fix.LogonReason]*Refusal{}
	}
	r.total[why]++
	if why == fix.LogonClosed || why == logonStopping { // not refused; or it ends with the process
		return
	}
	l := r.last[why]
	if l == nil || now.Sub(l.Last) >= recent {
		l = &Refusal{Reason: why, Since: now}
		r.last[why] = l
	}
	l.Count++
	l.Last, l.Session = now, ""
	if id != (fix.ID{}) {
		l.Session = id.String()
	}
	l.Text = strings.ToValidUTF8(err.Error(), "?")
	l.Text = l.Text[:min(len(l.Text), maxText)]
}

// now returns the recent ones, those of known sessions first, then the last one first.
func (r *refusals) now(now time.Time) []Refusal {
	list := []Refusal{}
	for _, l := range r.last {
		if now.Sub(l.Last) < recent {
			list = append(list, *l)
		}
	}
	slices.SortFunc(list, func(a, b Refusal) int {
		if (a.Session == "") != (b.Session == "") {
			if a.Session == "" {
				return 1
			}
			return -1
		}
		return b.Last.Compare(a.Last)
	})
	return list
}
