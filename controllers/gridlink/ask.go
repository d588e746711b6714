package gridlink

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// maxAnswer bounds the status of a link: a thousand partitions, each with an error.
const maxAnswer = 4 << 20

// answer is /status of grid-link, as far as it is used here.
type answer struct {
	Source     string      `json:"source"`
	Target     string      `json:"target"`
	Partitions []partition `json:"partitions"`
}

type partition struct {
	Partition  string  `json:"partition"`
	Open       bool    `json:"open"`
	LagEntries int64   `json:"lagEntries"`
	LagBytes   int64   `json:"lagBytes"`
	LagSeconds float64 `json:"lagSeconds"`
	Error      *struct {
		Permanent bool      `json:"permanent"`
		Text      string    `json:"text"`
		Since     time.Time `json:"since"`
	} `json:"error"`
}

// ask returns what the pod of a link reports.
func ask(ctx context.Context, c *http.Client, pod *corev1.Pod, link *api.GridLink) (*answer, error) {
	url := "http://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(api.LinkHTTPPort)) + "/status"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("GET %s: %w", url, err)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("GET %s: %s", url, resp.Status)
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("GET %s: the answer is longer than %d bytes", url, maxAnswer)
	}
	a := &answer{}
	if err := json.Unmarshal(body, a); err != nil {
		return nil, fmt.Errorf("GET %s: the answer is not that page of grid-link: %w", url, err)
	}
	if a.Source != link.Spec.From.Name() || a.Target != link.Spec.To.Name() {
		return nil, fmt.Errorf("GET %s: a link from %.63q to %.63q answered; the address has been given to another pod", url, a.Source, a.Target)
	}
	return a, nil
}
