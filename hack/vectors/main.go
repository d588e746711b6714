// Command vectors writes the conformance vectors of the protocol, docs/protocol/vectors/*.json: bytes as the Go codec
// writes and refuses them, for clients in other languages. With --verify it writes nothing and exits 1 when a file in
// the tree differs from what the codec makes.
//
//	go run ./hack/vectors [--verify]
package main

import (
	"fmt"
	"path/filepath"

	"github.com/ordergrid/ordergrid/internal/checkout"
	"github.com/ordergrid/ordergrid/internal/derived"
)

// dir has the vectors, and nothing else that ends with .json.
const dir = "docs/protocol/vectors"

func main() {
	derived.Main("vectors", "what the codec makes", func(verify bool) ([]string, error) {
		root, err := checkout.Root()
		if err != nil {
			return nil, err
		}
		return run(root, verify)
	})
}

// run makes all files and returns those that differed from the tree; it writes them unless verify is set.
func run(root string, verify bool) ([]string, error) {
	files, err := all()
	if err != nil {
		return nil, err
	}
	made := derived.Files{}
	for _, f := range files {
		if made[filepath.Join(dir, f.name)], err = f.text(); err != nil {
			return nil, err
		}
	}
	return made.Update(root, verify, filepath.Join(dir, "*.json"))
}

// all makes the files of vectors.
func all() (files []file, err error) {
	for _, make := range []func() (file, error){frameVectors, hostileVectors, entryVectors, hashVectors, orderVectors, nameVectors} {
		f, err := make()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		files = append(files, f)
	}
	return files, nil
}
