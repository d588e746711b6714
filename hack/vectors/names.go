package main

import (
	"errors"
	"strconv"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// nameVectors are receipts as text: what a client prints, and reads again as the name of an order.
func nameVectors() (file, error) {
	f := file{name: "names.json", about: "The order of this receipt has this name, which is read as that; hash is 16 hex digits, 0 for none. A vector with refused is no name of an order."}
	for _, r := range []client.Receipt{
		{Partition: 1, Seq: 17},
		{Partition: 1, Seq: 17, Epoch: 3},
		{Partition: 1, Seq: 17, Epoch: 3, Hash: 0x1c9f0e2a77b3d401},
		{Partition: 0, Seq: 1, Epoch: 1, Hash: 1},
		{Partition: wire.MaxPartitions - 1, Seq: most, Epoch: most, Hash: most},
	} {
		if _, _, err := client.ParseOrder(r.Name()); err != nil {
			return f, err
		}
		f.vectors = append(f.vectors, object{{"partition", small(r.Partition)}, {"seq", r.Seq}, {"epoch", r.Epoch}, {"hash", hash16(r.Hash)}, {"text", r.Name()}})
	}
	for _, s := range []string{"", "p1", "1/17", "p1/", "p1/0", "p1/017", "p01/17", "p1024/1", "p-1/1", "p1/+17", "p1/18446744073709551616", "p1/17@", "p1/17@0", "p1/17@x", "p1/17@3-", "p1/17@3-1c9f", "p1/17@3-0000000000000000", "p1/17@3-zzzzzzzzzzzzzzzz", "s0p1/17"} {
		_, _, err := client.ParseOrder(s)
		if err == nil {
			return f, errors.New(s + ": taken")
		}
		f.vectors = append(f.vectors, object{{"refused", true}, {"text", s}, {"why", err.Error()}})
	}
	return f, nil
}

// String is the number in digits.
func (n small) String() string { return strconv.FormatUint(uint64(n), 10) }
