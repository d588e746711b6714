package grid

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/system"
)

// scrapeEvery is an eager Prometheus; the usual one comes every 15 s to 60 s.
const scrapeEvery = time.Second

// nativeHistograms is what Prometheus asks for to get them.
const nativeHistograms = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

// scrapeAll asks every node for its metrics, as Prometheus does, until stop is
// called, which fails when the nodes were not scraped.
func scrapeAll(at system.Place, urls []string) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	client := &http.Client{Transport: &http.Transport{DialContext: at.Dial}, Timeout: scrapeEvery}
	var wg sync.WaitGroup
	var done, failed atomic.Int64
	for _, url := range urls {
		wg.Go(func() {
			every := time.NewTicker(scrapeEvery)
			defer every.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-every.C:
				}
				if err := scrapeOnce(ctx, client, url+"/metrics"); err == nil {
					done.Add(1)
				} else if ctx.Err() == nil {
					failed.Add(1)
				}
			}
		})
	}
	return func() error {
		cancel()
		wg.Wait()
		client.CloseIdleConnections()
		if d, f := done.Load(), failed.Load(); d == 0 || f > d/4 {
			return fmt.Errorf("%d scrapes succeeded and %d failed: this was no measurement of scraping", d, f)
		}
		return nil
	}
}

func scrapeOnce(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", nativeHistograms)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read to its end
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return nil
}
