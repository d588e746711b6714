package gridlink

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/workload"
)

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
	url, a := workload.StatusURL(pod.Status.PodIP, api.LinkHTTPPort), &answer{}
	if err := workload.Ask(ctx, c, url, "grid-link", a); err != nil {
		return nil, err
	}
	if a.Source != link.Spec.From.Name() || a.Target != link.Spec.To.Name() {
		return nil, fmt.Errorf("GET %s: a link from %.63q to %.63q answered; the address has been given to another pod", url, a.Source, a.Target)
	}
	return a, nil
}
