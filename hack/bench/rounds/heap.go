package rounds

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/ordergrid/ordergrid/hack/bench/system"
)

const heapMetric = "go_memstats_heap_inuse_bytes"

// goHeap asks a node how many bytes its Go heap has in use; orders are not on it.
func goHeap(ctx context.Context, at system.Place, url string) (int64, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: at.Dial}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("heap of a node: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read to its end
	return parseHeap(resp.Body)
}

func parseHeap(r io.Reader) (int64, error) {
	for sc := bufio.NewScanner(r); sc.Scan(); {
		if rest, ok := strings.CutPrefix(sc.Text(), heapMetric+" "); ok {
			v, err := strconv.ParseFloat(rest, 64)
			return int64(v), err
		}
	}
	return 0, fmt.Errorf("the node's metrics have no %s", heapMetric)
}
