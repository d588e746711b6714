// Package match is a matching engine: price-time priority in many books, call auctions,
// self-match prevention, stops and icebergs. It is the part `books` of the machine of a
// partition that matches (grid-node/machine). See docs/exchange.md.
//
// An Engine is a pure function of its operations. It reads no clock (an operation carries
// the time), starts no goroutine, uses no floating-point number, and ranges over no map.
// Two engines with the same Config that applied the same operations have written the same
// records, byte for byte, and have the same Position and Digest.
//
// Memory is allocated by New and Define, none by Apply. Work is bounded: an operation does
// at most Config.Work units and leaves the rest (a mass cancel, an auction, triggered
// stops) pending; the caller applies Continue while Pending reports true.
//
// Structure: orders in one slab, linked by index into the queue of their price. A side of
// a book is a ladder: pages of 64 prices, found by a directory, and bitmaps in three levels
// that find the next price in use. Bids are stored by the distance from the highest price,
// so that in each ladder the lowest key is the best.
package match
