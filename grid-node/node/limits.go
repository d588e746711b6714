package node

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// limitsEvery is the interval of reading the file of limits.
const limitsEvery = time.Second

// profile is the file of limits, as it was read last. Of the data loop but for the file.
type profile struct {
	text   []byte // canonical; nil without a file
	failed string // why the present content of the file is not taken, "" if it is
	known  inForce
}

// readProfile reads and checks the file of limits.
func (c *Config) readProfile() ([]byte, error) {
	file := c.LimitsFile + limits.SourcedFile
	info, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		file = c.LimitsFile
		info, err = os.Stat(file)
	}
	if err == nil && info.Size() > limits.MaxProfile {
		err = fmt.Errorf("it has %d bytes, allowed: at most %d", info.Size(), limits.MaxProfile)
	}
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p, err := limits.ParseProfile(text)
	if err != nil {
		return nil, err
	}
	if p.NeedsFills() && c.Execution == nil {
		return nil, fmt.Errorf("creditThreshold, repeatedExecutions or priceCollar.lastBps, allowed: with --execution=match")
	}
	return p.Canonical(), nil
}

func (c *Config) checkLimits() error {
	if c.LimitsFile == "" {
		return nil
	}
	if _, err := c.readProfile(); err != nil {
		return fmt.Errorf("--limits: %s: %w", c.LimitsFile, err)
	}
	return nil
}

// watchLimits follows the file. What cannot be read changes nothing: the limits before stay
// in force, and the file is read again at the next turn.
func (n *Node) watchLimits() {
	ticker := time.NewTicker(limitsEvery)
	defer ticker.Stop()
	last, failed := n.data.parts.profile.text, ""
	for {
		select {
		case <-ticker.C:
		case <-n.ctx.Done():
			return
		}
		text, err := n.cfg.readProfile()
		now := ""
		if err != nil {
			now = fmt.Sprintf("%.1000s", err)
		}
		if now != failed {
			if failed = now; err != nil {
				n.log.Error("the limits cannot be read, those before stay in force", "file", n.cfg.LimitsFile, "reason", err)
			}
			n.loop.Post(func() { n.data.parts.profile.failed = now })
		}
		if err == nil && !bytes.Equal(text, last) {
			last = text
			n.loop.Post(func() { n.data.parts.setProfile(text) })
		}
		n.loop.Post(n.data.parts.logRefusedProfiles)
	}
}

// logRefusedProfiles logs, once for each profile, why a primary cannot put it in force, or waits.
func (ps *partitions) logRefusedProfiles() {
	for _, p := range ps.list {
		if why := p.replica.ProfileWaits(); why != p.profileWaits {
			if p.profileWaits = why; why != "" {
				ps.log.Warn("the file of limits is behind the log", "partition", p.id.String(), "file", ps.cfg.LimitsFile, "reason", why)
			}
		}
		if why := p.replica.ProfileRefused(); why != p.profileRefused {
			if p.profileRefused = why; why != "" {
				ps.log.Error("the limits are refused, those before stay in force", "partition", p.id.String(), "file", ps.cfg.LimitsFile, "reason", why)
			}
		}
	}
}

// setProfile gives all partitions the limits that their primaries put in force.
func (ps *partitions) setProfile(text []byte) {
	ps.profile.text = text
	ps.log.Info("limits changed", "bytes", len(text))
	for _, p := range ps.list {
		if !p.ended {
			p.replica.SetProfile(text)
			p.step(&replica.Event{Kind: replica.EventTick})
		}
	}
}

// kill puts the identity of the client into its request, and logs it.
func (c *clients) kill(l *link, p *partition, frame []byte) error {
	var m wire.Kill
	if err := wire.DecodeKill(frame, &m); err != nil {
		return c.badFrame(l, wire.GoawayProtocol, err.Error())
	}
	if l.who != nil {
		m.Who = []byte(l.who.Name())
	} else {
		m.Who = fmt.Appendf(nil, "unauthenticated %s", m.Who)
	}
	m.Who = m.Who[:min(len(m.Who), order.MaxGuardWho)]
	c.log.Warn("kill switch", "partition", p.id.String(), "on", m.Op == wire.KillOn, "scope", order.GuardScope(m.Scope).String(), "name", fmt.Sprintf("%.64q", m.Name),
		"who", fmt.Sprintf("%.200q", m.Who), "why", fmt.Sprintf("%.400q", m.Why), "remote", l.conn.Remote())
	p.request(l, wire.AppendKill(nil, p.id, &m))
	return nil
}
