package replica

import (
	"bytes"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/region"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Reads of regions. The state is that of all entries stored here, committed or not. An answer
// is made of it when the request arrives, and leaves when what it is made of is committed,
// and, as the mode asks, the ack set has confirmed that this is still the primary.

// scanVisits bounds the entries that one page looks at, and scanRows those that it has.
const (
	scanVisits = 4096
	scanRows   = 2048
)

// regionGet reads a value.
func (r *Replica) regionGet(conn uint64, frame []byte) error {
	var m wire.RegionGet
	if err := wire.DecodeRegionGet(frame, &m); err != nil {
		return err
	}
	at, ok := r.readsRegion(conn, wire.TypeRegionGet, m.ReqID, m.Mode, m.Region)
	if !ok {
		return nil
	}
	r.countRegion(at, RegionGet, RegionDone)
	s := r.live.Regions
	got := wire.RegionGot{ReqID: m.ReqID, Epoch: r.epoch, CommitSeq: r.commit}
	v, found := s.Get(at, m.Key, r.regions.value[:0])
	need := s.Last()
	if found {
		got.Version, got.ExpireNs, got.Value, r.regions.value, need = v.Version, v.ExpireNs, v.Value, v.Value, v.Version
	}
	r.regions.op = wire.AppendRegionGot(r.regions.op[:0], r.part, &got)
	r.answerRegion(conn, wire.TypeRegionGet, m.ReqID, m.Mode, need, r.regions.op)
	return nil
}

// regionScan reads a page of a region.
func (r *Replica) regionScan(conn uint64, frame []byte) error {
	var m wire.RegionScan
	if err := wire.DecodeRegionScan(frame, &m); err != nil {
		return err
	}
	at, ok := r.readsRegion(conn, wire.TypeRegionScan, m.ReqID, m.Mode, m.Region)
	if !ok {
		return nil
	}
	r.countRegion(at, RegionScan, RegionDone)
	most := wire.MaxRegionPageBytes
	if m.MaxBytes != 0 {
		most = min(most, int(m.MaxBytes))
	}
	from, behind := m.From, m.Behind
	if bytes.Compare(from, m.Prefix) < 0 {
		from, behind = m.Prefix, false
	}
	s, rows, n, past := r.live.Regions, r.text[:0], 0, false
	var last []byte // the last key in the page
	next := s.Scan(at, from, behind, scanVisits, func(v *region.Value) bool {
		if past = !bytes.HasPrefix(v.Key, m.Prefix); past {
			return false
		}
		if n > 0 && (n == scanRows || len(rows)+wire.RegionRowFixed+len(v.Key)+len(v.Value) > most) {
			return false
		}
		rows = wire.AppendRegionRow(rows, &wire.RegionRow{Version: v.Version, ExpireNs: v.ExpireNs, Key: v.Key, Value: v.Value})
		last = append(last[:0], v.Key...)
		n++
		return true
	})
	r.text = rows
	page := wire.RegionPage{ReqID: m.ReqID, Epoch: r.epoch, CommitSeq: r.commit, Rows: rows}
	switch {
	case next == nil || past:
	case n > 0:
		page.Next = last
	default: // only expired ones so far
		page.Next = next
	}
	r.regions.op = wire.AppendRegionPage(r.regions.op[:0], r.part, &page)
	r.answerRegion(conn, wire.TypeRegionScan, m.ReqID, m.Mode, s.Last(), r.regions.op)
	return nil
}

// regionList lists the regions as this replica has them.
func (r *Replica) regionList(conn uint64, frame []byte) error {
	var m wire.RegionList
	if err := wire.DecodeRegionList(frame, &m); err != nil {
		return err
	}
	if r.ofOlderLineage() || r.role != RolePrimary && r.role != RoleBackup {
		r.notPrimary(conn, wire.TypeRegionList, m.ReqID, 0)
		return nil
	}
	listed := wire.RegionListed{ReqID: m.ReqID}
	rows := r.text[:0]
	if s := r.live.Regions; s != nil {
		listed.Used, listed.Limit = s.Used(), s.Limit()
		for _, reg := range s.Regions() {
			rows = wire.AppendRegionInfo(rows, &wire.RegionInfo{Entries: reg.Entries, Bytes: reg.Blocks * region.BlockSize, MaxBytes: reg.MaxBytes, LifeNs: reg.LifeNs, Name: []byte(reg.Name)})
		}
	}
	r.text, listed.Rows = rows, rows
	off := len(r.out.buf)
	r.out.buf = wire.AppendRegionListed(r.out.buf, r.part, &listed)
	r.out.reply(conn, off, nil)
	return nil
}

// readsRegion answers a read that this replica cannot serve, and otherwise finds the region.
func (r *Replica) readsRegion(conn uint64, t wire.Type, reqID uint64, mode uint8, name []byte) (at uint16, ok bool) {
	backup := mode == wire.ModeBackup && r.role == RoleBackup && !r.ofOlderLineage()
	if r.role != RolePrimary && !backup {
		r.notPrimary(conn, t, reqID, 0)
		return 0, false
	}
	if mode != wire.ModeBackup && r.refusesClients(conn, t, reqID, 0) {
		return 0, false
	}
	if !backup && r.commit < r.primary.floor {
		r.reject(conn, t, reqID, 0, wire.CodeOverloaded, 0, r.primary.floor-r.commit, "the new primary is still committing entries it took over; retry")
		return 0, false
	}
	s := r.live.Regions
	if s != nil {
		if at, ok = s.Find(name); ok {
			return at, true
		}
	}
	if r.awaitsRegion(name) {
		r.reject(conn, t, reqID, 0, wire.CodeOverloaded, 0, 0, regionAwaited)
	} else {
		r.reject(conn, t, reqID, 0, wire.CodeRegionUnknown, 0, 0, fmt.Sprintf("region is %.60q, allowed: one of the grid's regions", name))
	}
	return 0, false
}

// answerRegion sends an answer that was made of entries up to need, when that is committed
// and the mode is satisfied.
func (r *Replica) answerRegion(conn uint64, t wire.Type, reqID uint64, mode uint8, need uint64, frame []byte) {
	if mutant(mutRegionGetEarly) {
		need = 0
	}
	switch {
	case mode == wire.ModeBackup && need > r.commit:
		r.sendTo(&r.cfg.Primary, conn, t, reqID, 0) // it is being changed: the primary has the answer soon
		return
	case mode == wire.ModeBackup:
		r.count.ReadsBackup++
		r.sendRegion(conn, frame)
		return
	case mode == wire.ModeLeased && need <= r.commit && r.leaseAlive():
		r.count.ReadsLeased++
		r.sendRegion(conn, frame)
		return
	}
	rd := read{conn: conn, reqID: reqID, kind: readRegion, need: need, size: uint32(len(frame)), commit: uint64(t)}
	rd.seq = uint64(r.keepAnswer(frame))
	r.confirm(rd)
}

// keepAnswer keeps a frame until it may leave.
func (r *Replica) keepAnswer(frame []byte) uint32 {
	x := &r.regions
	n := len(x.idle)
	if n == 0 {
		x.answers = append(x.answers, append([]byte(nil), frame...))
		return uint32(len(x.answers) - 1)
	}
	at := x.idle[n-1]
	x.idle = x.idle[:n-1]
	x.answers[at] = append(x.answers[at][:0], frame...)
	return at
}

// dropAnswer returns a kept frame, which is valid until the next one is kept.
func (r *Replica) dropAnswer(at uint32) []byte {
	x := &r.regions
	frame := x.answers[at]
	if x.idle = append(x.idle, at); cap(frame) > 4096 || len(x.idle) > 256 {
		x.answers[at] = nil
	}
	return frame
}

// forget drops what is kept for a read that is not answered.
func (r *Replica) forget(rd *read) {
	if rd.kind == readRegion {
		r.dropAnswer(uint32(rd.seq))
	}
}

// sendRegion sends an answer.
func (r *Replica) sendRegion(conn uint64, frame []byte) {
	r.count.ReadBytes += uint64(len(frame))
	off := len(r.out.buf)
	r.out.buf = append(r.out.buf, frame...)
	r.out.reply(conn, off, nil)
}
