package client

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Get reads the value of a key, by default linearizably, see ReadMode. ErrNotFound: there is
// none. Failed attempts are repeated until ctx or RequestTimeout ends.
func (r *Region) Get(ctx context.Context, key []byte, opts ...ReadOption) (Entry, error) {
	if err := r.check(key, nil); err != nil {
		return Entry{}, err
	}
	mode, err := modeOf(opts)
	if err != nil {
		return Entry{}, err
	}
	p := r.c.RouteClOrdID(key)
	m, err := r.got(ctx, p, key, mode)
	if err != nil {
		return Entry{}, err
	}
	if m.Version == 0 {
		return Entry{}, fmt.Errorf("client: region %s: %w", r.name, ErrNotFound)
	}
	return Entry{Key: key, Value: m.Value, Version: m.Version, Expires: expires(m.ExpireNs), Partition: p, CommitSeq: m.CommitSeq}, nil
}

// got reads a key of a partition.
func (r *Region) got(ctx context.Context, p wire.PartitionID, key []byte, mode ReadMode) (m wire.RegionGot, err error) {
	_, err = r.c.retry(ctx, p, mode == Backup, func(ctx context.Context, addr string) error {
		return r.c.call(ctx, addr, func(dst []byte, reqID uint64) []byte {
			return wire.AppendRegionGet(dst, p, &wire.RegionGet{ReqID: reqID, Mode: uint8(mode), Region: []byte(r.name), Key: key})
		}, func(frame []byte) error { return wire.DecodeRegionGot(frame, &m) })
	})
	if err != nil {
		return m, fmt.Errorf("client: region %s: %w", r.name, err)
	}
	return m, nil
}

func expires(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// Scan calls fn for the entries whose keys begin with prefix, partition by partition, in each
// in the order of their bytes, until fn returns an error, which it returns. Pages are read
// one after the other and go on behind the last key, at any node: a key that is there all the
// time is seen once, one that changes meanwhile as before or as after.
func (r *Region) Scan(ctx context.Context, prefix []byte, fn func(Entry) error, opts ...ReadOption) error {
	for at := (&ScanPosition{}); at != nil; {
		var err error
		if at, err = r.ScanPage(ctx, prefix, *at, fn, opts...); err != nil {
			return err
		}
	}
	return nil
}

// ScanPosition is how far a scan has come. The zero value is its beginning. It holds nothing at the nodes.
type ScanPosition struct {
	partition wire.PartitionID
	begun     bool   // behind is that of a page of the partition
	behind    []byte // the page is behind this key
}

// ScanPage calls fn for the entries of one page of a Scan, which has at most 256 KiB, or one entry, and returns where the
// next one begins; nil: there is none. A page may have no entry and still be followed by another.
func (r *Region) ScanPage(ctx context.Context, prefix []byte, at ScanPosition, fn func(Entry) error, opts ...ReadOption) (*ScanPosition, error) {
	mode, err := modeOf(opts)
	if err != nil {
		return nil, err
	}
	if err := r.check([]byte{0}, prefix); err != nil {
		return nil, err
	}
	ask := wire.RegionScan{Mode: uint8(mode), Region: []byte(r.name), Prefix: prefix, From: at.behind, Behind: at.begun}
	switch more, err := r.page(ctx, at.partition, &ask, fn); {
	case err != nil:
		return nil, err
	case more:
		return &ScanPosition{at.partition, true, ask.From}, nil
	case int(at.partition)+1 < len(r.c.Table()):
		return &ScanPosition{partition: at.partition + 1}, nil
	}
	return nil, nil
}

// page reads a page, and makes ask that of the next.
func (r *Region) page(ctx context.Context, p wire.PartitionID, ask *wire.RegionScan, fn func(Entry) error) (more bool, err error) {
	var m wire.RegionPage
	_, err = r.c.retry(ctx, p, ask.Mode == wire.ModeBackup, func(ctx context.Context, addr string) error {
		return r.c.call(ctx, addr, func(dst []byte, reqID uint64) []byte {
			ask.ReqID = reqID
			return wire.AppendRegionScan(dst, p, ask)
		}, func(frame []byte) error { return wire.DecodeRegionPage(frame, &m) })
	})
	if err != nil {
		return false, fmt.Errorf("client: region %s: %w", r.name, err)
	}
	last, behind := ask.From, ask.Behind
	for rest := m.Rows; len(rest) > 0; {
		var row wire.RegionRow
		if rest, err = wire.NextRegionRow(rest, &row); err != nil {
			return false, err
		}
		if c := bytes.Compare(row.Key, last); c < 0 || c == 0 && behind || !bytes.HasPrefix(row.Key, ask.Prefix) {
			return false, fmt.Errorf("client: region %s: %w: %s has key %q in a page behind %q with prefix %q", r.name, ErrProtocol, p, row.Key, last, ask.Prefix)
		}
		last, behind = row.Key, true
		if err := fn(Entry{Key: row.Key, Value: row.Value, Version: row.Version, Expires: expires(row.ExpireNs), Partition: p, CommitSeq: m.CommitSeq}); err != nil {
			return false, err
		}
	}
	if len(m.Next) > 0 && bytes.Compare(m.Next, ask.From) <= 0 {
		return false, fmt.Errorf("client: region %s: %w: %s goes on behind %q, allowed: behind %q", r.name, ErrProtocol, p, m.Next, ask.From)
	}
	ask.From, ask.Behind = m.Next, true
	return len(m.Next) > 0, nil
}

// RegionInfo is a region of the grid: the sum of its partitions.
type RegionInfo struct {
	Name     string
	Entries  uint64
	Bytes    uint64 // that they take, in blocks
	MaxBytes uint64 // that they may take, 0: what all regions together may
	Life     time.Duration
}

// PartitionRegions are the regions of a partition, as its primary has them.
type PartitionRegions struct {
	Partition wire.PartitionID
	Used      uint64 // bytes that all of them take, with what was taken and is not received yet
	Limit     uint64 // bytes that all of them may take, 0: the log has no regions yet
	Regions   []RegionInfo
}

// RegionsByPartition lists the regions of each partition, as the primaries have them now.
func (c *Client) RegionsByPartition(ctx context.Context) ([]PartitionRegions, error) {
	var list []PartitionRegions
	for i := range c.Table() {
		of, err := c.RegionsAt(ctx, wire.PartitionID(i), "")
		if err != nil {
			return nil, err
		}
		list = append(list, of)
	}
	return list, nil
}

// RegionsAt lists the regions of a partition as a replica has them now: the address of one of its members, "" for the
// primary. They are in the order of their numbers, from 0, which entries of the log have in place of names
// (order.RegionOp); of a replica's list those are certain whose entries it has committed.
func (c *Client) RegionsAt(ctx context.Context, p wire.PartitionID, replica string) (of PartitionRegions, err error) {
	if err := c.checkPartition(p); err != nil {
		return of, err
	}
	var m wire.RegionListed
	ask := func(ctx context.Context, addr string) error {
		return c.call(ctx, addr, func(dst []byte, reqID uint64) []byte {
			return wire.AppendRegionList(dst, p, &wire.RegionList{ReqID: reqID})
		}, func(frame []byte) error { return wire.DecodeRegionListed(frame, &m) })
	}
	if replica != "" {
		err = ask(ctx, replica)
	} else {
		_, err = c.retry(ctx, p, false, ask)
	}
	if err != nil {
		return of, fmt.Errorf("client: regions of %s: %w", p, err)
	}
	of = PartitionRegions{Partition: p, Used: m.Used, Limit: m.Limit}
	for rest := m.Rows; len(rest) > 0; {
		var row wire.RegionInfo
		if rest, err = wire.NextRegionInfo(rest, &row); err != nil {
			return of, err
		}
		of.Regions = append(of.Regions, RegionInfo{string(row.Name), row.Entries, row.Bytes, row.MaxBytes, time.Duration(row.LifeNs)})
	}
	return of, nil
}

// Regions lists the regions of the grid, as the primaries have them now.
func (c *Client) Regions(ctx context.Context) ([]RegionInfo, error) {
	partitions, err := c.RegionsByPartition(ctx)
	if err != nil {
		return nil, err
	}
	var list []RegionInfo
	at := map[string]int{}
	for i := range partitions {
		for _, r := range partitions[i].Regions {
			n, known := at[r.Name]
			if !known {
				n = len(list)
				at[r.Name] = n
				list = append(list, RegionInfo{Name: r.Name, Life: r.Life})
			}
			list[n].Entries, list[n].Bytes, list[n].MaxBytes = list[n].Entries+r.Entries, list[n].Bytes+r.Bytes, list[n].MaxBytes+r.MaxBytes
		}
	}
	return list, nil
}
