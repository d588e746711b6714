package main

import (
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// grids are numbers of partitions that orders are routed in.
var grids = []uint64{1, 2, 3, 7, 8, 64, 1000, 1024}

func hashVectors() (file, error) {
	f := file{name: "hashes.json", about: "xxHash64 with seed 0 of these bytes, as 16 hex digits. partitions: with as many partitions in the grid an order with this ClOrdID belongs to that one."}
	for n := range 70 { // every path of the function: bytes, words of 4 and 8, stripes of 32
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i*37 + n)
		}
		f.vectors = append(f.vectors, object{{"hex", b}, {"hash", hash16(order.Hash(b))}})
	}
	for _, id := range []string{"ORD-1", "1", "PRA20071115T00000001", "a", "ABCD", "ABCDE", "ABCDEFGH", "ABCDEFGHIJKL", strings.Repeat("x", 31), strings.Repeat("x", 32), strings.Repeat("x", 33), strings.Repeat("~", order.MaxClOrdID)} {
		h := order.HashClOrdID([]byte(id))
		var of object
		for _, n := range grids {
			of = append(of, member{small(n).String(), small(h % n)})
		}
		f.vectors = append(f.vectors, object{{"clOrdID", id}, {"hex", []byte(id)}, {"hash", hash16(h)}, {"partitions", of}})
	}
	return f, nil
}
