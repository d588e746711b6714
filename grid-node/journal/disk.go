package journal

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
)

// Disk is an FS in memory whose power can be cut: what was not synced is lost then, in part
// or as a whole, or is garbage. The simulator and tests use it. It is not safe for
// concurrent use.
type Disk struct {
	files   map[string]*diskFile
	durable map[string]*diskFile // the names as of the last Sync
	// Room is how many bytes can be written before the disk is full; negative: any number.
	Room int64
	// Fails makes every Sync fail.
	Fails error
}

type diskFile struct {
	d      *Disk
	b      []byte
	synced int // bytes of it
}

// NewDisk makes an empty disk.
func NewDisk() *Disk {
	return &Disk{files: map[string]*diskFile{}, durable: map[string]*diskFile{}, Room: -1}
}

// CutPower loses what was not synced. Of the bytes behind the synced ones of a file a part
// may be there, with sectors in between that are not.
func (d *Disk) CutPower(rng *rand.Rand) {
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		if _, ok := d.durable[name]; !ok && rng.IntN(2) == 0 { // the name happened to be written
			d.durable[name] = d.files[name]
		}
	}
	d.files = maps.Clone(d.durable)
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		d.files[name].cut(rng)
	}
}

const sector = 512

func (f *diskFile) cut(rng *rand.Rand) {
	tail := len(f.b) - f.synced
	kept := slices.Clone(f.b[:f.synced])
	if tail > 0 && rng.IntN(3) > 0 {
		kept = append(kept, f.b[f.synced:][:rng.IntN(tail+1)]...)
		for at := f.synced / sector * sector; at < len(kept); at += sector {
			if rng.IntN(3) == 0 {
				clear(kept[max(at, f.synced):min(at+sector, len(kept))])
			}
		}
	}
	f.b, f.synced = kept, len(kept)
}

// List and the other methods are those of FS.
func (d *Disk) List() ([]string, error) { return slices.Sorted(maps.Keys(d.files)), nil }

func (d *Disk) Read(name string) ([]byte, error) {
	f := d.files[name]
	if f == nil {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return slices.Clone(f.b), nil
}

func (d *Disk) Create(name string) (File, error) {
	if d.files[name] != nil {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrExist)
	}
	f := &diskFile{d: d}
	d.files[name] = f
	return f, nil
}

func (d *Disk) Cut(name string, size int64) error {
	f := d.files[name]
	f.b, f.synced = f.b[:size], min(f.synced, int(size))
	return f.Sync()
}

func (d *Disk) Rename(from, to string) error {
	d.files[to] = d.files[from]
	delete(d.files, from)
	return nil
}

func (d *Disk) Remove(name string) error {
	delete(d.files, name)
	return nil
}

func (d *Disk) Sync() error {
	d.durable = maps.Clone(d.files)
	return d.Fails
}

// Spoil changes a byte of a file.
func (d *Disk) Spoil(name string, at int64) {
	f := d.files[name]
	f.b[at] ^= 0x40
	f.synced = len(f.b)
}

func (f *diskFile) Write(b []byte) (int, error) {
	if r := f.d.Room; r >= 0 {
		if int64(len(b)) > r {
			f.b = append(f.b, b[:r]...)
			f.d.Room = 0
			return int(r), errNoSpace
		}
		f.d.Room -= int64(len(b))
	}
	f.b = append(f.b, b...)
	return len(b), nil
}

func (f *diskFile) Truncate(size int64) error {
	f.b = f.b[:size]
	return nil
}

func (f *diskFile) Sync() error {
	if f.d.Fails == nil {
		f.synced = len(f.b)
	}
	return f.d.Fails
}

func (f *diskFile) Close() error { return nil }

var errNoSpace = fmt.Errorf("write: %w", syscall.ENOSPC)
