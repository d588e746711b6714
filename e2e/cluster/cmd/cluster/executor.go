package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	protocol "github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
	"github.com/ordergrid/ordergrid/e2e/cluster"
	"github.com/ordergrid/ordergrid/e2e/cluster/executor"
	"github.com/ordergrid/ordergrid/e2e/cluster/local"
	"github.com/ordergrid/ordergrid/internal/pki"
	"github.com/ordergrid/ordergrid/probe/report"
)

// executorPort is where the executor listens unless told otherwise.
const executorPort = "9700"

func (a *app) executor() *cobra.Command {
	cmd := &cobra.Command{Use: "executor", Short: "Do faults to this cluster's nodes and pods for FailoverDrills"}
	cmd.AddCommand(a.executorServe(), a.executorFaults(), a.executorClear())
	return cmd
}

// station is a cluster's executor: its state, its token, its hands.
type station struct {
	cluster cluster.Inspectable
	local   *local.Cluster // nil on kind
	dir     string
}

func (a *app) station(ctx context.Context) (*station, error) {
	c, kind, err := a.open(ctx, false)
	if err != nil {
		return nil, err
	}
	machines, ok := c.(cluster.Inspectable)
	if !ok {
		_, err := cluster.MachinesOf(c, kind)
		return nil, err
	}
	if _, err := machines.Nodes(ctx); err != nil {
		return nil, err
	}
	s := &station{cluster: machines, dir: machines.ExecutorDir()}
	s.local, _ = c.(*local.Cluster)
	return s, os.MkdirAll(s.dir, 0o700)
}

func (s *station) options(token string) executor.Options {
	o := executor.Options{Name: "cluster executor", Dir: s.dir, Token: token, Hands: []executor.Hands{&executor.Machines{Of: s.cluster}}}
	o.Say = func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
	}
	if s.local != nil { // kind's pods live in containers of containers
		o.Hands = append(o.Hands, executor.NewPods(s.local))
	}
	return o
}

func (s *station) file(name string) string { return filepath.Join(s.dir, name) }

// token is made once, and kept for the cluster's life.
func (s *station) token() (string, error) {
	content, err := os.ReadFile(s.file("token"))
	if err == nil {
		return strings.TrimSpace(string(content)), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	token := rand.Text()
	return token, os.WriteFile(s.file("token"), []byte(token), 0o600)
}

// lock is held while faults change: one server, or clear without one.
func (s *station) lock() (*os.File, error) {
	file, err := os.OpenFile(s.file("lock"), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, errServed
	}
	return file, nil
}

var errServed = errors.New("an executor of this cluster runs already; see: cluster executor faults")

// client asks the executor that runs.
func (s *station) client() (*protocol.Client, error) {
	url, err := os.ReadFile(s.file("url"))
	if err != nil {
		return nil, fmt.Errorf("no executor was started for this cluster (cluster executor serve): %w", err)
	}
	token, err := s.token()
	if err != nil {
		return nil, err
	}
	authority, err := s.authority()
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.Cert)
	return protocol.NewClient(strings.TrimSpace(string(url)), token, &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}})
}

// authority vouches for the executor. It is made once, and kept for the cluster's life.
func (s *station) authority() (*pki.Authority, error) {
	return pki.Load(s.file("authority"), "drill executor")
}

// identity is how the executor shows at its address who it is.
func (s *station) identity(address net.Addr) (*tls.Config, error) {
	authority, err := s.authority()
	if err != nil {
		return nil, err
	}
	at, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return nil, err
	}
	cert, key, err := authority.Issue(pki.Identity{User: "drill executor", Addrs: []netip.Addr{at.Addr()}})
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}, err
}

func (a *app) executorServe() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve until interrupted; faults stay, and the next one takes them up",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.station(cmd.Context())
			if err != nil {
				return err
			}
			return s.serve(cmd.Context(), listen)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "HOST:PORT pods can reach (default: this host's address on the local cluster's network, port "+executorPort+")")
	return cmd
}

func (s *station) serve(ctx context.Context, listen string) error {
	if listen == "" {
		if s.local == nil {
			return errors.New("--listen is needed on kind: this host's address on Docker's network, as docker network inspect kind shows it, with a port")
		}
		addr, err := s.local.HostAddr()
		if err != nil {
			return err
		}
		listen = net.JoinHostPort(addr.String(), executorPort)
	}
	lock, err := s.lock()
	if err != nil {
		return err
	}
	defer lock.Close()
	token, err := s.token()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	if s.local != nil {
		err = s.local.NoteExecutor()
	}
	identity, err2 := s.identity(listener.Addr())
	url := "https://" + listener.Addr().String()
	if err = errors.Join(err, err2, os.WriteFile(s.file("url"), []byte(url+"\n"), 0o644)); err != nil {
		return err
	}
	server, err := executor.NewServer(s.options(token))
	if err != nil {
		return err
	}
	defer server.Close()
	s.announce(url)
	front := &http.Server{Handler: server.Handler(), TLSConfig: identity, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	stop := context.AfterFunc(ctx, func() { _ = front.Close() })
	defer stop()
	if err := front.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	if n := server.Active(); n > 0 {
		fmt.Fprintf(os.Stderr, "%d faults stay; the next executor takes them up, or take them back with: cluster executor clear\n", n)
	}
	return nil
}

func (s *station) announce(url string) {
	fmt.Printf(`URL    %[1]s
token  %[2]s
CA     %[3]s

  kubectl -n ordergrid-system create secret generic drill-executor-local --from-file=token=%[2]s --from-file=ca.crt=%[3]s
  helm upgrade ... --set drills.executors[0].name=local --set drills.executors[0].url=%[1]s --set drills.executors[0].tokenSecret=drill-executor-local --set drills.executors[0].caSecret=drill-executor-local
`, url, s.file("token"), filepath.Join(s.file("authority"), "ca.crt"))
}

func (a *app) executorFaults() *cobra.Command {
	return &cobra.Command{
		Use:   "faults",
		Short: "List the faults the executor did, and whether they are there still",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.station(cmd.Context())
			if err != nil {
				return err
			}
			client, err := s.client()
			if err != nil {
				return err
			}
			all, err := client.List(cmd.Context())
			if err != nil {
				return err
			}
			table := report.NewList("ID", "TYPE", "STATE", "DEADLINE", "WITNESS", "MESSAGE")
			for _, f := range all {
				deadline := "-"
				if f.Deadline != nil {
					deadline = f.Deadline.Local().Format(time.TimeOnly)
				}
				table.Add(f.ID, f.Type, f.State, deadline, f.Witness.Message, f.Message)
			}
			return table.Text(os.Stdout)
		},
	}
}

func (a *app) executorClear() *cobra.Command {
	return &cobra.Command{
		Use:   "clear",
		Short: "Take back every fault the executor did, whether it runs or not",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.station(cmd.Context())
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), 10*time.Minute)
			defer cancel()
			return s.clear(ctx)
		},
	}
}

func (s *station) clear(ctx context.Context) error {
	lock, err := s.lock()
	switch {
	case errors.Is(err, errServed):
		client, err := s.client()
		if err == nil {
			err = executor.ClearServed(ctx, client)
		}
		if err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		defer lock.Close()
		if err := executor.Clear(ctx, s.options("no client")); err != nil {
			return err
		}
	}
	return s.sweep(ctx)
}

// sweep removes rules in pods that no fault accounts for.
func (s *station) sweep(ctx context.Context) error {
	if s.local == nil {
		return nil
	}
	nodes, err := s.local.Nodes(ctx)
	if err != nil {
		return err
	}
	removed := 0
	for _, node := range nodes {
		pids, err := s.local.PodNetworks(ctx, node)
		if err != nil {
			return err
		}
		n, err := executor.RemoveRules(ctx, pids)
		if err != nil {
			return err
		}
		removed += n
	}
	fmt.Printf("no fault is left; %d chains of rules that belonged to none were removed\n", removed)
	return nil
}
