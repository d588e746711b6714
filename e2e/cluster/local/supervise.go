package local

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/e2e/artifact"
)

// MachineSpec is what a machine's first process reads on its standard input
// once the cable is plugged in.
type MachineSpec struct {
	Name     string    `json:"name"`
	Bin      string    `json:"bin"`  // the programs, on the host
	Dir      string    `json:"dir"`  // the machine's own directory, on the host
	Node     bool      `json:"node"` // runs containers
	Services []Service `json:"services"`
}

// Restart delays. A service that ran for a while starts over with the shortest.
const (
	restartMin = 500 * time.Millisecond
	restartMax = 8 * time.Second
	ranWell    = 30 * time.Second
	probeEvery = 100 * time.Millisecond
)

// Supervise is the first process of a machine: it makes the machine's mounts,
// keeps its services running and reaps what they orphan. It returns only on
// failure; the machine is switched off by killing it.
func Supervise(stdin io.Reader) error {
	if os.Getpid() != 1 {
		return fmt.Errorf("supervise is run by the tool itself as the first process of a machine, not by hand (process id %d)", os.Getpid())
	}
	if err := isolate(); err != nil {
		return err
	}
	// The parent process connects the network now and then sends the
	// specification; nothing at all means it died before that.
	input, err := io.ReadAll(stdin)
	if err != nil {
		return fmt.Errorf("reading the specification: %w", err)
	}
	if len(input) == 0 {
		return errors.New("the parent process ended before connecting this machine")
	}
	var spec MachineSpec
	if err := json.Unmarshal(input, &spec); err != nil {
		return fmt.Errorf("reading the specification: %w", err)
	}
	if err := spec.mounts(); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	first := &initProcess{exits: map[int]chan syscall.WaitStatus{}}
	for _, service := range spec.Services {
		go first.keep(service)
	}
	first.reap()
	return nil
}

// initProcess starts children and collects every exit in one place: in a
// process-id namespace orphans belong to its first process, and two waiters
// would steal each other's children.
type initProcess struct {
	mu    sync.Mutex
	exits map[int]chan syscall.WaitStatus
}

// keep runs one service forever.
func (i *initProcess) keep(service Service) {
	delay := restartMin
	for {
		waitFor(service.After)
		start := time.Now()
		status, err := i.runOnce(service)
		if time.Since(start) > ranWell {
			delay = restartMin
		}
		fmt.Fprintf(os.Stderr, "%s %s ended after %s (%s, %v); again in %s\n", time.Now().UTC().Format(time.RFC3339),
			service.Name, time.Since(start).Round(time.Millisecond), describeExit(status), err, delay)
		time.Sleep(delay)
		delay = min(2*delay, restartMax)
	}
}

func (i *initProcess) runOnce(service Service) (syscall.WaitStatus, error) {
	program, err := artifact.LookPath(service.Args[0], machineBin)
	if err != nil {
		return 0, err
	}
	log, err := os.OpenFile(machineLog+service.Name+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	// Registered under the lock, so that the reaper cannot meet an exit it
	// does not know.
	i.mu.Lock()
	pid, err := syscall.ForkExec(program, service.Args, &syscall.ProcAttr{
		Dir:   "/",
		Env:   machineEnv(),
		Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		i.mu.Unlock()
		return 0, fmt.Errorf("starting %s: %w", program, err)
	}
	exited := make(chan syscall.WaitStatus, 1)
	i.exits[pid] = exited
	i.mu.Unlock()
	return <-exited, nil
}

// reap collects exits until there can be none.
func (i *initProcess) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.ECHILD:
			time.Sleep(probeEvery) // services are waiting to be started
			continue
		case err != nil:
			continue
		}
		i.mu.Lock()
		exited := i.exits[pid]
		delete(i.exits, pid)
		i.mu.Unlock()
		if exited != nil {
			exited <- status
		}
	}
}

func describeExit(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "killed by " + status.Signal().String()
	}
	return fmt.Sprintf("exit code %d", status.ExitStatus())
}

// machineEnv is a fixed environment: nothing of the caller's shell may change
// how a machine behaves.
func machineEnv() []string {
	return []string{"PATH=" + machineBin + ":" + artifact.SystemPath, "HOME=/root", "LANG=C.UTF-8", "GOGC=200"}
}

// waitFor returns once the condition of a service's start holds.
func waitFor(condition string) {
	if condition == "" {
		return
	}
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: clusterTLS()}}
	for !holds(client, condition) {
		time.Sleep(probeEvery)
	}
}

func holds(client *http.Client, condition string) bool {
	if path, isSocket := strings.CutPrefix(condition, "unix:"); isSocket {
		conn, err := net.Dial("unix", path)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	}
	response, err := client.Get(condition)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func clusterTLS() *tls.Config {
	pool := x509.NewCertPool()
	if ca, err := os.ReadFile(machineEtc + "ca.crt"); err == nil {
		pool.AppendCertsFromPEM(ca)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}
