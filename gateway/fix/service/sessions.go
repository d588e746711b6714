package service

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/gateway/fix/roster"
)

// problem is an error that is there for a while; nil: none.
type problem struct{ p atomic.Pointer[string] }

func (p *problem) set(err error) (changed bool) {
	var text *string
	if err != nil {
		t := err.Error()
		text = &t
	}
	old := p.p.Swap(text)
	return (old == nil) != (text == nil) || old != nil && *old != *text
}

func (p *problem) String() string {
	if t := p.p.Load(); t != nil {
		return *t
	}
	return ""
}

// rereadShare: reading the files again takes at most one of so many parts of the time of a core.
const rereadShare = 50

// watch reads the files of the sessions again, every Reread or less often where they are many, until ctx ends.
func (s *Service) watch(ctx context.Context, who *roster.Roster) {
	for took := time.Duration(0); ; {
		select {
		case <-time.After(max(s.cfg.Reread, took*rereadShare)):
		case <-ctx.Done():
			return
		}
		begun := time.Now()
		who = s.reread(who)
		took = time.Since(begun)
	}
}

// reread reads the files again, and returns the roster that they are now. With files that are wrong the sessions stay as they
// are. The loop has nothing to do for what has not changed.
func (s *Service) reread(old *roster.Roster) *roster.Roster {
	who, err := old.Reload()
	if err == nil && who != old {
		err = s.cfg.protects(who)
	}
	if s.files.set(err) && err != nil {
		s.log.Error("the file of the sessions is wrong; those read before stay", "error", err.Error())
	}
	if err != nil {
		return old
	}
	if who != old || s.unfinished.Load() {
		s.server.Post(func(now fix.Now) { s.take(now, who) })
	}
	return who
}

// take makes a roster the one in use.
func (s *Service) take(now fix.Now, who *roster.Roster) {
	if who != s.roster {
		s.log.Info("the sessions were read again", "sessions", who.Len())
		s.roster = who
	}
	if err := s.adopt(now); err != nil { // a profile that Load took
		s.log.Error("a session cannot be made", "error", err.Error())
	}
}

// changed reports why a session is logged out that is to be another one.
func changed(k *kept, home *fix.Home, same bool) string {
	if h := &k.home; same && h.Segment == home.Segment && h.Partition == home.Partition && h.DropCopy && home.DropCopy {
		return "the sessions whose reports this session gets copies of have changed; log on again"
	}
	return "the settings of this session have changed"
}

// adopt makes the sessions those of the roster. A session that is not in it any more, or
// in another way, is logged out first, and changed at the next call: until then it is unfinished.
func (s *Service) adopt(now fix.Now) (err error) {
	unfinished := false
	defer func() { s.unfinished.Store(unfinished || err != nil) }()
	want := map[fix.ID]fix.Profile{}
	for _, p := range s.roster.Profiles() {
		want[p.ID] = p
	}
	for id, k := range s.sessions {
		home := s.roster.Home(id)
		switch p, is := want[id]; {
		case is && p == k.profile && home.Equal(&k.home):
			delete(want, id)
		case k.LoggedOn():
			k.Logout(now, changed(k, &home, is && p == k.profile))
			unfinished = true
			delete(want, id)
		case !is:
			delete(s.sessions, id)
		}
	}
	for id, p := range want {
		k, home := s.sessions[id], s.roster.Home(id)
		if k == nil || !home.Equal(&k.home) { // in another partition it begins anew; other sources are named with the next Logon
			store, err := s.desk.Store(id, home)
			if err != nil {
				return fmt.Errorf("session %s: %w", id, err)
			}
			k = &kept{store: store, home: home}
		}
		f, err := s.server.Session(p, k.store, s.desk)
		if err != nil {
			return fmt.Errorf("session %s: %w", id, err)
		}
		k.Session, k.profile = f, p
		s.sessions[id] = k
	}
	return nil
}
