package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
	"github.com/ordergrid/ordergrid/probe/drill/certificate"
)

// fileDrill is beside the files of a certificate.
const fileDrill = "drill.yaml"

// Bounds of data from a recorder.
const (
	historyLimit   = 16 << 30 // bytes
	historyTimeout = 30 * time.Minute
	ordersTimeout  = 2 * time.Second // the line of an event does not wait for longer
	ordersRetry    = 15 * time.Second
)

// recorderLink reaches the recorder of a drill through the API server.
type recorderLink struct {
	cluster *cluster
	// open returns the local end of a tunnel to a pod, and a function that ends it.
	open func(ctx context.Context, pod string) (address string, end func(), err error)

	end    func() // of the present tunnel
	client *recorder.Client
	pod    string
	retry  time.Time // no attempt before
}

func newRecorderLink(c *cluster) *recorderLink {
	return &recorderLink{cluster: c, open: func(ctx context.Context, pod string) (string, func(), error) {
		tunnels := newForwarder(c, "")
		local, err := tunnels.open(ctx, pod, strconv.Itoa(api.RecorderPort))
		if err != nil {
			tunnels.close()
		}
		return local, tunnels.close, err
	}}
}

// close ends the tunnel.
func (l *recorderLink) close() {
	if l.end != nil {
		l.end()
	}
	l.end, l.client = nil, nil
}

// dial opens a tunnel to the recorder's pod, unless there is one.
func (l *recorderLink) dial(ctx context.Context, d *api.FailoverDrill) (*recorder.Client, error) {
	run := d.Status.Recorder
	if run == nil || run.Pod == "" {
		return nil, fmt.Errorf("drill %s has no recorder yet; see kubectl ordergrid drill status %s", d.Name, d.Name)
	}
	if l.client != nil && l.pod == run.Pod {
		return l.client, nil
	}
	l.close()
	var secret corev1.Secret
	if err := l.cluster.core.Get().Namespace(l.cluster.namespace).Resource("secrets").Name(api.RecorderName(d.Name)).Do(ctx).Into(&secret); err != nil {
		return nil, fmt.Errorf("token of the recorder: %w", err)
	}
	secure, err := recorder.Trusting(secret.Data["ca.crt"], string(d.UID))
	if err != nil {
		return nil, fmt.Errorf("Secret %s: %w; it was written by another version of the operator", secret.Name, err)
	}
	local, end, err := l.open(ctx, run.Pod)
	if err != nil {
		return nil, fmt.Errorf("port-forward to the recorder's pod %s: %w; it is kept for spec.ttl (%s) after the end", run.Pod, err, d.Spec.TTL.Duration)
	}
	l.end, l.pod, l.client = end, run.Pod, recorder.NewClient("https://"+local, string(secret.Data["token"]), secure)
	return l.client, nil
}

// orders returns the number of orders so far; "" where the recorder is not reachable: users who may follow a drill need
// not be allowed to connect to pods.
func (l *recorderLink) orders(ctx context.Context, d *api.FailoverDrill) string {
	if time.Now().Before(l.retry) {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, ordersTimeout)
	defer cancel()
	client, err := l.dial(ctx, d)
	if err == nil {
		var s *recorder.State
		if s, err = client.State(ctx); err == nil {
			return countsText(s.Counts)
		}
	}
	l.close()
	l.retry = time.Now().Add(ordersRetry)
	return ""
}

func countsText(c recorder.Counts) string {
	text := fmt.Sprintf("%d orders acknowledged", c.Acknowledged)
	if c.Rejected > 0 {
		text += fmt.Sprintf(", %d rejected", c.Rejected)
	}
	if c.Unknown > 0 {
		text += fmt.Sprintf(", %d unknown", c.Unknown)
	}
	return text
}

// certificate returns one form of it: from the ConfigMap, which outlives the recorder, or else from the recorder.
func (l *recorderLink) certificate(ctx context.Context, d *api.FailoverDrill, form string) ([]byte, error) {
	c := d.Status.Certificate
	if c == nil {
		return nil, fmt.Errorf("drill %s has no certificate yet; kubectl ordergrid drill follow %s%s waits for it", d.Name, d.Name, inNamespace(l.cluster))
	}
	data, err := l.fromConfigMap(ctx, c.ConfigMap, form)
	if len(data) == 0 && err == nil {
		data, err = l.fromRecorder(ctx, d, form)
	}
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", d.Name, err)
	}
	if form == certificate.JSONFile {
		if got := certificate.Sum(data); c.SHA256 != "" && got != c.SHA256 {
			return nil, fmt.Errorf("certificate of %s was changed: its sha256 is %s, status.certificate.sha256 is %s", d.Name, got, c.SHA256)
		}
	}
	return data, nil
}

// fromConfigMap returns nothing where the key is missing: a large form is not in it.
func (l *recorderLink) fromConfigMap(ctx context.Context, name, key string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	var m corev1.ConfigMap
	if err := l.cluster.core.Get().Namespace(l.cluster.namespace).Resource("configmaps").Name(name).Do(ctx).Into(&m); err != nil {
		return nil, err
	}
	if text, ok := m.Data[key]; ok {
		return []byte(text), nil
	}
	return m.BinaryData[key], nil
}

func (l *recorderLink) fromRecorder(ctx context.Context, d *api.FailoverDrill, form string) ([]byte, error) {
	client, err := l.dial(ctx, d)
	if err != nil {
		return nil, err
	}
	switch form {
	case certificate.TextFile:
		return client.Text(ctx)
	case certificate.PageFile:
		return client.Page(ctx)
	}
	return client.Certificate(ctx)
}

// history copies the compressed history and compares its check sum with the certificate's.
func (l *recorderLink) history(ctx context.Context, d *api.FailoverDrill, to string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	client, err := l.dial(ctx, d)
	if err != nil {
		return err
	}
	partial := to + ".part" // half a history must not pass for a whole one
	f, err := os.Create(partial)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = client.History(ctx, io.MultiWriter(f, sum), historyLimit)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("history of %s: %w", d.Name, err), os.Remove(partial))
	}
	got := hex.EncodeToString(sum.Sum(nil))
	if c := d.Status.Certificate; c != nil && c.HistorySHA256 != "" && c.HistorySHA256 != got {
		return errors.Join(fmt.Errorf("history of %s: its sha256 is %s, the certificate was made from %s", d.Name, got, c.HistorySHA256), os.Remove(partial))
	}
	return os.Rename(partial, to)
}

// save writes everything available about a drill into a folder.
func (l *recorderLink) save(ctx context.Context, d *api.FailoverDrill, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	d = d.DeepCopy()
	d.APIVersion, d.Kind, d.ManagedFields = api.GroupVersion.String(), "FailoverDrill", nil
	text, err := yaml.Marshal(d)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, fileDrill), text, 0o644)
	}
	if d.Status.Certificate == nil {
		return err
	}
	for _, form := range []string{certificate.TextFile, certificate.JSONFile, certificate.PageFile} {
		data, e := l.certificate(ctx, d, form)
		if e == nil {
			e = os.WriteFile(filepath.Join(folder, form), data, 0o644)
		}
		err = errors.Join(err, e)
	}
	if e := l.history(ctx, d, filepath.Join(folder, certificate.HistoryFile)); err != nil || e != nil {
		return errors.Join(err, e)
	}
	sums := fmt.Sprintf("%s  %s\n%s  %s\n", d.Status.Certificate.HistorySHA256, certificate.HistoryFile, d.Status.Certificate.SHA256, certificate.JSONFile)
	return os.WriteFile(filepath.Join(folder, certificate.SumsFile), []byte(sums), 0o644)
}
