package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/internal/proc"
)

// Server is a Prometheus that runs.
type Server struct {
	URL string

	cmd   *exec.Cmd
	ended chan struct{}
	log   *proc.Tail
	port  proc.HeldPorts
}

// startLimit is how long a server may take to answer.
const startLimit = 30 * time.Second

// Start runs the program in dir, where it keeps its data, on a free port of this
// machine. config is the path of a configuration. The server ends with Stop, or
// with this process.
func Start(ctx context.Context, program, dir, config string) (*Server, error) {
	s := &Server{ended: make(chan struct{}), log: &proc.Tail{}}
	address, err := s.port.Take("127.0.0.1", 0)
	if err != nil {
		return nil, err
	}
	s.URL = "http://" + address
	s.cmd = exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "tsdb"), "--web.listen-address="+address, "--log.level=warn")
	s.cmd.Stderr, s.cmd.Dir = s.log, dir
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := s.cmd.Start(); err != nil {
		s.port.Release()
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait() // how it ended is in its log
		s.port.Release()
		close(s.ended)
	}()
	limit := time.After(startLimit)
	for {
		select {
		case <-ctx.Done():
			s.Stop()
			return nil, ctx.Err()
		case <-s.ended:
			return nil, fmt.Errorf("%s ended: %s", program, s.log.String())
		case <-limit:
			s.Stop()
			return nil, fmt.Errorf("%s does not answer after %v: %s", program, startLimit, s.log.String())
		case <-time.After(100 * time.Millisecond):
		}
		if resp, err := http.Get(s.URL + "/-/ready"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return s, nil
			}
		}
	}
}

// Stop ends the server.
func (s *Server) Stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-s.ended:
	case <-time.After(10 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}

// Alert is one that is pending or fires.
type Alert struct {
	Labels, Annotations map[string]string
	State               string // pending, firing
	Value               string
}

// Alerts asks for all that are pending or fire now.
func (s *Server) Alerts(ctx context.Context) ([]Alert, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/api/v1/alerts", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return nil, err
	}
	var answer struct{ Data struct{ Alerts []Alert } }
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("/api/v1/alerts: status %s: %.200q", resp.Status, text)
	}
	return answer.Data.Alerts, nil
}
