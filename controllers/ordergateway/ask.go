package ordergateway

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/workload"
)

// askAtATime is how many pods are asked at the same time.
const askAtATime = 8

// answer is /status of order-gateway, as far as it is used here.
type answer struct {
	Grid      string `json:"grid"`
	Listeners struct {
		FIX        *fixAnswer    `json:"FIX"`
		WebSocket  *streamAnswer `json:"WebSocket"`
		PostgreSQL *sqlAnswer    `json:"PostgreSQL"`
	} `json:"listeners"`
}

// fixAnswer is the part of the listener for FIX.
type fixAnswer struct {
	Configured  int32     `json:"configured"`
	Sessions    int64     `json:"sessions"`
	MaxSessions int64     `json:"maxSessions"`
	Draining    bool      `json:"draining"`
	FileError   string    `json:"fileError"`
	Refused     []refusal `json:"refused"`
	Unreachable []string  `json:"unreachable"`
	Error       string    `json:"error"`
}

// refusal is why logons were refused.
type refusal struct {
	Reason  string    `json:"reason"`
	Count   int64     `json:"count"`
	Session string    `json:"session"`
	Text    string    `json:"text"`
	Last    time.Time `json:"last"`
}

// said is what is known of a pod that should serve.
type said struct {
	pod string
	*answer
	silent error // nil: it answered
}

// askAll asks all pods that run, in the order of their names.
func askAll(ctx context.Context, c *http.Client, g *api.OrderGateway, pods []corev1.Pod) (list []said) {
	var ips []string
	for i := range pods {
		if p := &pods[i]; p.DeletionTimestamp == nil && p.Status.PodIP != "" && p.Status.Phase == corev1.PodRunning {
			list, ips = append(list, said{pod: p.Name}), append(ips, p.Status.PodIP)
		}
	}
	slots := make(chan struct{}, askAtATime)
	var all sync.WaitGroup
	for i := range list {
		s := &list[i]
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			s.answer, s.silent = ask(ctx, c, ips[i], g)
		})
	}
	all.Wait()
	return list
}

// ask returns what a pod reports.
func ask(ctx context.Context, c *http.Client, ip string, g *api.OrderGateway) (*answer, error) {
	url, a := workload.StatusURL(ip, api.GatewayHTTPPort), &answer{}
	if err := workload.Ask(ctx, c, url, "order-gateway", a); err != nil {
		return nil, err
	}
	if a.Grid != g.Spec.GridRef.Name {
		return nil, fmt.Errorf("GET %s: a gateway of grid %.63q answered; the address has been given to another pod", url, a.Grid)
	}
	return a, nil
}
