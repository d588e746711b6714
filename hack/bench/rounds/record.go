package rounds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/system"
)

// recording takes profiles of servers while they are loaded.
type recording struct {
	client *http.Client
	urls   []string
	dir    string
	wg     sync.WaitGroup
	errs   []error
}

// serverNames of Running.HTTP, by index.
var serverNames = []string{"primary", "backup", "third"}

// record takes CPU profiles from the middle of the measured time.
func record(ctx context.Context, at system.Place, urls []string, dir string, warmup, length time.Duration) *recording {
	r := &recording{client: &http.Client{Transport: &http.Transport{DialContext: at.Dial}}, urls: urls, dir: dir, errs: make([]error, len(urls))}
	for i, url := range urls {
		r.wg.Go(func() {
			select {
			case <-time.After(warmup + length/10):
			case <-ctx.Done():
				return
			}
			seconds := max(1, int((length * 8 / 10).Seconds()))
			r.errs[i] = r.fetch(ctx, fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", url, seconds), serverNames[i]+".cpu.pprof")
		})
	}
	return r
}

// finish waits for the CPU profiles and takes those that cover all of the
// process's life: allocations and blocking.
func (r *recording) finish(ctx context.Context) error {
	if r == nil {
		return nil
	}
	defer r.client.CloseIdleConnections()
	r.wg.Wait()
	errs := r.errs
	for i, url := range r.urls {
		for _, kind := range []string{"allocs", "block"} {
			errs = append(errs, r.fetch(ctx, url+"/debug/pprof/"+kind, serverNames[i]+"."+kind+".pprof"))
		}
	}
	return errors.Join(errs...)
}

func (r *recording) fetch(ctx context.Context, url, name string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read to its end
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("profile: %s answers %s", url, resp.Status)
	}
	f, err := os.Create(filepath.Join(r.dir, name))
	if err != nil {
		return err
	}
	_, err = io.Copy(f, resp.Body)
	return errors.Join(err, f.Close())
}
