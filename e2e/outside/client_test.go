//go:build e2e

package outside

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// clientVariable has the endpoint of the client that this program is then, in place of the suite: one client that puts
// orders on the grid until its standard input ends, and prints their outcome.
const clientVariable = "ORDERGRID_OUTSIDE_ENDPOINT"

func TestMain(m *testing.M) {
	if endpoint := os.Getenv(clientVariable); endpoint != "" {
		if err := runClient(endpoint); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// account is the result that a client prints.
type account struct {
	Accepted   map[string]int // by partition
	Failed     int
	Example    string // of a failure
	Found      int    // of the accepted ones, by their ClOrdID, at the end
	Duplicates uint64
	Violations uint64
	Outages    []string
}

const (
	clientWorkers = 8
	clientEvery   = 20 * time.Millisecond // of each worker: 400 orders a second in all
)

func runClient(endpoint string) error {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{Endpoints: []string{endpoint}, Grid: grid, RequestTimeout: 30 * time.Second,
		TLS: client.TLSFiles(client.PEMFiles{Cert: "tls.crt", Key: "tls.key", CA: "ca.crt", Name: nodesName})})
	if err != nil {
		return err
	}
	var (
		mu   sync.Mutex
		wg   sync.WaitGroup
		sums = account{Accepted: map[string]int{}}
		ids  = map[string]client.Receipt{}
		end  = make(chan struct{})
		run  = fixorder.NewRun()
	)
	for w := range clientWorkers {
		id := fixorder.ID{Run: run, Probe: w}
		maker, err := fixorder.NewMaker(fixorder.FIX42, id)
		if err != nil {
			return err
		}
		wg.Go(func() {
			for n := int64(1); ; n++ {
				select {
				case <-end:
					return
				case <-time.After(clientEvery):
				}
				now := time.Now()
				r, err := c.Submit(ctx, maker.Make(n, n, now, now))
				mu.Lock()
				if err != nil {
					sums.Failed++
					sums.Example = err.Error()
				} else {
					sums.Accepted[r.Partition.String()]++
					ids[id.ClOrdID(n)] = r
				}
				mu.Unlock()
			}
		})
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	close(end)
	wg.Wait()
	for id, r := range ids {
		if o, err := c.GetByClOrdID(ctx, id); err == nil && o.ID == r.ID() {
			sums.Found++
		}
	}
	s := c.Stats()
	sums.Duplicates, sums.Violations = s.Duplicates, s.Violations
	for _, o := range c.Outages() {
		sums.Outages = append(sums.Outages, o.String())
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(&sums)
	}
	return err
}
