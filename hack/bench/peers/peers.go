package peers

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/hack/bench/cases"
	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// Peer is one of them.
type Peer struct {
	// HeapMiB is the heap of each server; 0: as much as a case allows, at most serverHeap.
	HeapMiB int
	// Flags are further ones of every JVM.
	Flags []string

	name, class string

	mvn, java, javac string // paths, "" if they are not installed
	dir              string // of the servers' working directories
	classpath        string // set by Build
}

// peers that there are, by the names under which pom.xml has their versions.
var peers = []Peer{
	{name: cases.Hazelcast, class: "hazelcast.HazelcastPeer"},
	{name: cases.Coherence, class: "coherence.CoherencePeer"},
	{name: cases.Geode, class: "geode.GeodePeer"},
	{name: cases.Ignite, class: "ignite.IgnitePeer"},
}

// All asks for every peer.
const All = "all"

// Choose returns the peers that a list of names, separated by commas, asks for.
// dir is where their processes may write.
func Choose(list, dir string) ([]*Peer, error) {
	wanted := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
	var chosen []*Peer
	for _, p := range peers {
		if i := slices.Index(wanted, p.name); i >= 0 {
			wanted = slices.Delete(wanted, i, i+1)
		} else if list != All {
			continue
		}
		p.dir = dir
		p.mvn, _ = exec.LookPath("mvn") // Missing tells
		p.java, _ = exec.LookPath("java")
		p.javac, _ = exec.LookPath("javac")
		chosen = append(chosen, &p)
	}
	if list != All && len(wanted) > 0 {
		return nil, fmt.Errorf("value %q, allowed: %s, or some of %s, separated by commas", list, All, strings.Join(names(), ", "))
	}
	return chosen, nil
}

func names() (all []string) {
	for _, p := range peers {
		all = append(all, p.name)
	}
	return all
}

// Name implements system.System.
func (p *Peer) Name() string { return p.name }

// Missing implements system.System.
func (p *Peer) Missing() string {
	switch {
	case p.mvn == "":
		return "Maven is not installed; it fetches and builds the peer (apt-get install maven)"
	case p.java == "" || p.javac == "":
		return "no JDK is installed, release 17 or later (apt-get install default-jdk-headless)"
	}
	return ""
}

// Floor implements system.System.
func (p *Peer) Floor() bool { return false }

// startEstimate is what two servers and a generator take until they are ready, on two cores.
const startEstimate = 20 * time.Second

// Setup implements system.WithGenerator.
func (p *Peer) Setup() time.Duration { return startEstimate }

// Memory of a process in MiB: enough for the orders of a few seconds, and all of it
// there before anything is measured.
const (
	serverHeap    = 1024
	generatorHeap = 512
)

// Generator implements system.WithGenerator.
func (p *Peer) Generator() []string {
	return append(p.jvm(generatorHeap), "dev.ordergrid.peers.Generator")
}

// Client is the command line of another client: its main class, and what it reads from its command line.
func (p *Peer) Client(heapMiB int, main, peer, servers string) []string {
	return append(p.jvm(heapMiB), "dev.ordergrid.peers."+main, "--peer", "dev.ordergrid.peers."+peer, "--servers", servers)
}

// Ports of a server: what for, the peer's class says.
const ports = 3

// Start implements system.System.
func (p *Peer) Start(ctx context.Context, at system.Place, t system.Topology) (*system.Running, error) {
	return system.Started(func(group *proc.Group) (*system.Running, error) { return p.start(ctx, at, t, group) })
}

func (p *Peer) start(ctx context.Context, at system.Place, t system.Topology, group *proc.Group) (*system.Running, error) {
	// Of every start its own: some leave files about their cluster, and read them.
	dir, err := os.MkdirTemp(p.dir, p.name+"-")
	if err != nil {
		return nil, err
	}
	group.Add(func() error { return os.RemoveAll(dir) })
	servers, err := layout(at, t.Copies)
	if err != nil {
		return nil, err
	}
	run := &system.Running{Driver: generator.Kind(p.qualified()), Addresses: []string{servers}}
	for i, role := range []system.Role{system.Primary, system.Backup}[:t.Copies] {
		args := append(p.jvm(cmp.Or(p.HeapMiB, min(serverHeap, t.MemoryMiB))), "dev.ordergrid.peers.Server", "--peer", p.qualified(), "--servers", servers, "--own", strconv.Itoa(i))
		cmd := at.Command(role, args[0], args[1:]...)
		cmd.Dir = filepath.Join(dir, role.String())
		if err := os.Mkdir(cmd.Dir, 0o755); err != nil {
			return nil, err
		}
		server, err := proc.Start(p.name+" "+role.String(), cmd)
		if err != nil {
			return nil, err
		}
		group.Add(func() error { server.Kill(); return nil }) // nothing is on disk
		run.PIDs = append(run.PIDs, server.PID())
		if _, err := server.Line(ctx, "ready"); err != nil {
			return nil, err
		}
	}
	return run, nil
}

func (p *Peer) qualified() string { return "dev.ordergrid.peers." + p.class }

// layout is the servers' host and free ports as class Servers reads them:
// HOST=PORT,PORT,PORT;PORT,PORT,PORT.
func layout(at system.Place, servers int) (string, error) {
	var listeners []net.Listener // all at once, so that no port comes twice
	defer func() {
		for _, l := range listeners {
			_ = l.Close()
		}
	}()
	var all []string
	for range servers {
		var own []string
		for range ports {
			l, err := at.Listen()
			if err != nil {
				return "", err
			}
			listeners = append(listeners, l)
			_, port, err := net.SplitHostPort(l.Addr().String())
			if err != nil {
				return "", err
			}
			own = append(own, port)
		}
		all = append(all, strings.Join(own, ","))
	}
	return at.IP(system.Primary) + "=" + strings.Join(all, ";"), nil
}
