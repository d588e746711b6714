package grid

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// SinkNames of the sinks in the grid.
var SinkNames = []string{"archive", "kafka", "postgres"}

// Sinks of a run. The broker and the server are started once: each takes seconds. They are idle while a grid without
// sinks is measured. Every grid has a topic, tables and a directory of its own.
type Sinks struct {
	Program string // grid-sink
	Dir     string // for data; it is the caller's to remove

	kafka    *downstream.Kafka
	postgres *downstream.Postgres
	urlFile  string
	grids    int
}

// Missing returns why they cannot run here; "" if they can.
func (s *Sinks) Missing() string {
	for _, program := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Sprintf("Kafka needs the program %s (apt-get install default-jdk-headless maven)", program)
		}
	}
	if _, err := downstream.FindPostgres(); err != nil {
		return err.Error()
	}
	return ""
}

// Start starts what sinks write to.
func (s *Sinks) Start(ctx context.Context) error {
	bin, err := downstream.FindPostgres()
	if err != nil {
		return err
	}
	if s.postgres, err = downstream.NewPostgres(bin, downstream.PostgresOptions{}); err != nil {
		return err
	}
	s.urlFile = filepath.Join(s.Dir, "postgres.url")
	if err := os.WriteFile(s.urlFile, []byte(s.postgres.Admin()), 0o600); err != nil {
		return err
	}
	dir := filepath.Join(s.Dir, "kafka")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	s.kafka, err = downstream.StartKafka(ctx, dir)
	return err
}

// Stop ends what Start has started.
func (s *Sinks) Stop() {
	if s.kafka != nil {
		s.kafka.Stop()
	}
	if s.postgres != nil {
		s.postgres.Remove()
	}
}

// Follow starts a process of each sink for a new grid and returns when all of them write, with the processes of both
// sides. The group ends them, and reports one that wrote no order.
func (s *Sinks) Follow(ctx context.Context, grid string, addresses []string, group *proc.Group) (pids []int, err error) {
	s.grids++
	name := fmt.Sprintf("%s_%d", grid, s.grids)
	if out, err := exec.CommandContext(ctx, s.Program, "postgres", "migrate", "--url-file", s.urlFile, "--schema", name).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("grid-sink postgres migrate: %w\n%s", err, out)
	}
	dir := filepath.Join(s.Dir, "archive-"+name)
	group.Add(func() error { return os.RemoveAll(dir) })
	targets := map[string][]string{
		"archive":  {"--url", dir},
		"kafka":    {"--broker", s.kafka.Address, "--topic", name, "--replication-factor", "1"},
		"postgres": {"--url-file", s.urlFile, "--schema", name},
	}
	var running []*follower
	for _, kind := range SinkNames {
		web, err := system.Address(system.Loopback{}, system.Client, 0)
		if err != nil {
			return nil, err
		}
		args := append([]string{kind, "--endpoint", strings.Join(addresses, ","), "--grid", grid, "--sink", kind, "--http", web, "--log-level", "warn"}, targets[kind]...)
		p, err := proc.Start("grid-sink "+kind, exec.Command(s.Program, args...))
		if err != nil {
			return nil, err
		}
		f := &follower{Process: p, url: "http://" + web + "/status"}
		group.Add(f.end)
		running, pids = append(running, f), append(pids, p.PID())
	}
	for _, f := range running {
		if err := f.awaitReady(ctx); err != nil {
			for _, f := range running { // the group need not wait for what they write
				f.Kill()
			}
			return nil, err
		}
	}
	server, err := s.postgres.PIDs()
	if err != nil {
		return nil, err
	}
	return append(append(pids, s.kafka.PID()), server...), nil
}
