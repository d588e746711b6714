package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
)

// maxAnswer bounds a status page: a thousand partitions, each with an error.
const maxAnswer = 4 << 20

// StatusURL is the status page of a pod.
func StatusURL(ip string, port int) string {
	return "http://" + net.JoinHostPort(ip, strconv.Itoa(port)) + "/status"
}

// Ask decodes the JSON page at url into answer. program is what should answer there.
func Ask(ctx context.Context, c *http.Client, url, program string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("GET %s: %w", url, err)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("GET %s: %s", url, resp.Status)
	case len(body) > maxAnswer:
		return fmt.Errorf("GET %s: the answer is longer than %d bytes", url, maxAnswer)
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("GET %s: the answer is not that page of %s: %w", url, program, err)
	}
	return nil
}
