package client_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
)

// primesEndpoints stands for the address of a grid whose nodes have the example function primes.
func primesEndpoints() ([]string, func()) {
	dir, err := os.MkdirTemp("", "map-")
	if err != nil {
		log.Fatal(err)
	}
	regions, module := filepath.Join(dir, "regions.yaml"), filepath.Join(dir, "primes.wasm")
	for file, content := range map[string][]byte{regions: []byte("memory: 16Mi\nregions: [{name: numbers}]\n"), module: examples.Primes} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			log.Fatal(err)
		}
	}
	g, err := testgrid.Open(context.Background(), testgrid.Options{Args: []string{"--", "--regions", regions,
		"--function-compute", fmt.Sprintf("primes=%s:sha256=%x", module, sha256.Sum256(examples.Primes))}})
	if err != nil {
		log.Fatal(err)
	}
	return g.Endpoints, func() {
		_ = g.Stop()
		_ = os.RemoveAll(dir)
	}
}

func ExampleClient_Map() {
	endpoints, stop := primesEndpoints()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.Dial(ctx, client.Config{Endpoints: endpoints})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	// Four slices of the numbers up to 10,000, counted once, on threads of the nodes.
	args := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 10_000), 1)
	parts, err := c.Map(ctx, "primes", client.MapRequest{Args: args, Slices: 4})
	if err != nil {
		log.Fatal(err)
	}
	found := uint64(0)
	for _, p := range parts {
		found += binary.LittleEndian.Uint64(p.Reply)
	}
	fmt.Println(len(parts), "slices:", found)

	// The values of a region, as they are after one entry of each partition's log.
	for v := range uint32(20) {
		if _, err := c.Region("numbers").Put(ctx, fmt.Appendf(nil, "n%d", v), binary.LittleEndian.AppendUint32(nil, v)); err != nil {
			log.Fatal(err)
		}
	}
	found = 0
	parts, err = c.Map(ctx, "primes", client.MapRequest{Region: "numbers", Args: args})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range parts {
		found += binary.LittleEndian.Uint64(p.Reply)
	}
	fmt.Println("in the region:", found)
	// Output:
	// 4 slices: 1229
	// in the region: 8
}
