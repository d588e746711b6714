package client_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
)

// BenchmarkGridRegionPatch patches the same keys one by one, as many of them under way as the window has room for, and by
// batches, in one grid: a key is an operation.
func BenchmarkGridRegionPatch(b *testing.B) {
	const keys = 100_000
	file := filepath.Join(b.TempDir(), "regions.yaml")
	if err := os.WriteFile(file, []byte("memory: 256Mi\nregions:\n- name: positions\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	c := dial(b, testgrid.Run(b, "--", "--regions", file))
	r, all := c.Region("positions"), keysOf("K", keys)
	var entries []client.Entry
	for _, k := range all {
		entries = append(entries, client.Entry{Key: k, Value: make([]byte, 300)})
	}
	if _, err := r.PutAll(b.Context(), entries); err != nil {
		b.Fatal(err)
	}
	some := all[:keys*4/10]
	b.Run("each", func(b *testing.B) {
		for range b.N {
			var under sync.WaitGroup
			room := make(chan struct{}, 512)
			for _, k := range some {
				room <- struct{}{}
				under.Add(1)
				done := func(_ client.Receipt, err error) {
					if err != nil {
						b.Error(err)
					}
					<-room
					under.Done()
				}
				for {
					err := r.PatchAsync(k, 9, []byte("7"), done)
					if err == nil {
						break
					}
					if !errors.Is(err, client.ErrWindowFull) {
						b.Fatal(err)
					}
				}
			}
			under.Wait()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(some)), "ns/key")
	})
	b.Run("all", func(b *testing.B) {
		for n := range b.N {
			got, err := r.PatchAll(b.Context(), some, 9, fmt.Appendf(nil, "%d", n%10))
			if err != nil || got.Changed != len(some) {
				b.Fatal(got, err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(some)), "ns/key")
	})
}
