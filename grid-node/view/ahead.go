package view

import (
	"unsafe"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/internal/prefetch"
)

// What a row needs lies in tables larger than caches: the place of its ClOrdID, its texts in
// dictionaries, and the last block of each posting. The rows of a step are prepared together, so that
// the processor waits for several of these at once.

// aheadRows are prepared together.
const aheadRows = 8

// prepared is what is known of an entry before it is applied.
type prepared struct {
	entry           []byte
	e               order.Entry
	err             error // the entry cannot be read
	place           uint32
	symbol, account uint32 // hashes
}

// isOrder reports whether the entry gets a row of an order.
func (p *prepared) isOrder() bool { return p.err == nil && p.e.Kind == order.KindOrder }

// touch starts to load an entry, its longest part that is read.
func (p *prepared) touch(entry []byte) {
	p.entry = entry
	for at := 0; at < min(len(entry), 5*64); at += 64 {
		prefetch.Line(unsafe.Pointer(&entry[at]))
	}
}

// prepare reads the entry, and starts to load the places of its texts.
func (v *View) prepare(p *prepared) {
	_, p.err = order.DecodeEntry(p.entry, &p.e)
	if !p.isOrder() {
		return
	}
	f, msg := &p.e.Fields, order.Payload(p.entry)
	p.place = v.ids.place(msg[f.ClOrdIDOff:][:f.ClOrdIDLen])
	prefetch.Line(unsafe.Pointer(&v.ids.heads[p.place]))
	p.symbol = v.defs[defSymbol].dict.hint(msg[f.SymbolOff:][:f.SymbolLen])
	p.account = v.defs[defAccount].dict.hint(msg[f.AccountOff:][:f.AccountLen])
}

// hint hashes a text and starts to load its place in the table.
func (d *dict) hint(s []byte) (hash uint32) {
	hash = d.hash(s)
	prefetch.Line(unsafe.Pointer(&d.table[hash&uint32(len(d.table)-1)]))
	return hash
}

// likely returns the entry that most likely is that of a text by its hash, nil for none.
func (d *dict) likely(hash uint32) *dictEntry {
	if code := d.table[hash&uint32(len(d.table)-1)]; code != 0 {
		return d.entry(code)
	}
	return nil
}

// loadTexts starts to load the texts' entries of an order that is prepared.
func (v *View) loadTexts(p *prepared) {
	for _, d := range [...]*dictEntry{v.defs[defSymbol].dict.likely(p.symbol), v.defs[defAccount].dict.likely(p.account)} {
		if d != nil {
			prefetch.Line(unsafe.Pointer(d))
		}
	}
}

// loadPostings starts to load the blocks that its row is added to.
func (v *View) loadPostings(p *prepared) {
	for k, d := range v.posted {
		hash := p.symbol
		switch d {
		case &v.defs[defSymbol]:
		case &v.defs[defAccount]:
			hash = p.account
		default:
			continue
		}
		if e := d.dict.likely(hash); e != nil && e.list.tail != 0 {
			prefetch.Line(unsafe.Pointer(v.posts[k].block(e.list.tail)))
		}
	}
}

// applyAll applies entries from seq to last of a log, and returns the first error. get returns an entry.
func (v *View) applyAll(seq, last uint64, get func(seq uint64) []byte) error {
	for ; seq <= last; seq += aheadRows {
		step := v.ahead[:min(aheadRows, last+1-seq)]
		for i := range step {
			step[i].touch(get(seq + uint64(i)))
		}
		for i := range step {
			v.prepare(&step[i])
		}
		for i := range step {
			if step[i].isOrder() {
				v.loadTexts(&step[i])
			}
		}
		for i := range step {
			if step[i].isOrder() {
				v.loadPostings(&step[i])
			}
		}
		for i := range step {
			if err := v.applyPrepared(&step[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
