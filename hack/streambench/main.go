// Command streambench compares the stream server with a floor: a bare epoll writer that sends pre-framed messages to the
// sockets that want them and knows nothing else; and, with --nats, with NATS over WebSocket. All get the same clients,
// topics, messages and rate, in turns; each is a process of its own, which publishes, and whose CPU and memory are read, and
// this process has the clients.
//
//	go run ./hack/streambench --clients 1000 --rate 100000 --flush 0s --nats
//
// A table row: messages delivered a second, latency from publishing to the client's read, the server's CPU per delivered
// message, and its memory per client, connected and subscribed, without the kernel's and that of its code.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/ordergrid/ordergrid/hack/streambench/rounds"
)

func main() {
	var s rounds.Shape
	serve := flag.String("serve", "", "internal: floor or server")
	count := flag.Int("rounds", 3, "rounds, each of all servers")
	nats := flag.Bool("nats", false, "NATS over WebSocket too: its server is built, from a module of its own")
	s.Register(flag.CommandLine)
	flag.Parse()
	log.SetFlags(0)
	err := s.Check()
	switch {
	case err != nil:
	case *serve != "":
		err = child(*serve, &s)
	default:
		err = compare(&s, *count, *nats)
	}
	if err != nil {
		log.Fatal("streambench: ", err)
	}
}

// child is a process that serves a round.
func child(kind string, s *rounds.Shape) error {
	if kind == "floor" {
		return rounds.Serve(newFloor(s), s)
	}
	t, err := newServer(s)
	if err != nil {
		return err
	}
	return rounds.Serve(t, s)
}

// peer is a server that is compared.
type peer struct {
	kind string
	exe  string
	args []string
}

func compare(s *rounds.Shape, count int, nats bool) error {
	peers := []peer{{"floor", os.Args[0], []string{"--serve", "floor"}}, {"server", os.Args[0], []string{"--serve", "server"}}}
	if nats {
		dir, err := os.MkdirTemp("", "streambench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // of the machine's temporary files
		exe, err := buildNATS(context.Background(), dir)
		if err != nil {
			return err
		}
		peers = append(peers, peer{"nats", exe, nil})
	}
	fmt.Printf("%d clients, %d of %d topics each, %d bytes, %d/s offered, flush %s, %s a round\n", s.Clients, s.Each, s.Topics, s.Payload, s.Rate, s.Flush, s.Lasts)
	fmt.Printf("%-8s %12s %10s %10s %16s %14s\n", "", "delivered/s", "p50 ms", "p99 ms", "CPU us/delivered", "KiB a client")
	ratios := make([][]float64, len(peers)) // of the server's CPU by that of a peer
	for range count {
		cpu := make([]float64, len(peers))
		for i, p := range peers {
			r, err := round(s, &p)
			if err != nil {
				return fmt.Errorf("%s: %w", p.kind, err)
			}
			cpu[i] = r.cpuUS / float64(r.delivered)
			fmt.Printf("%-8s %12.0f %10.2f %10.2f %16.2f %14.2f\n", p.kind, float64(r.delivered)/r.lasted.Seconds(), r.p50.Seconds()*1e3, r.p99.Seconds()*1e3, cpu[i], r.kib)
			if r.lost > 0 {
				fmt.Printf("%-8s left out %d messages\n", "", r.lost)
			}
		}
		for i := range peers {
			ratios[i] = append(ratios[i], cpu[1]/cpu[i])
		}
	}
	for i, p := range peers {
		if p.kind != "server" {
			slices.Sort(ratios[i])
			fmt.Printf("CPU of the server by that of %s, median of %d rounds: %.2f (%.2f to %.2f)\n", p.kind, count, ratios[i][count/2], ratios[i][0], ratios[i][count-1])
		}
	}
	return nil
}

type result struct {
	delivered int
	lost      int
	lasted    time.Duration
	p50, p99  time.Duration
	cpuUS     float64
	kib       float64
}

// round runs one server in a process of its own.
func round(s *rounds.Shape, p *peer) (r result, err error) {
	cmd := exec.Command(p.exe, append(p.args, s.Args()...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return r, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return r, err
	}
	if err := cmd.Start(); err != nil {
		return r, err
	}
	defer func() {
		_ = in.Close()
		if e := cmd.Wait(); err == nil {
			err = e
		}
	}()
	lines := bufio.NewReader(out)
	var addr string
	if _, err := fmt.Fscanf(lines, "%s\n", &addr); err != nil {
		return r, fmt.Errorf("address: %w", err)
	}
	c, err := connect(s, p.kind, addr)
	if err != nil {
		return r, err
	}
	defer c.close()
	if _, err := io.WriteString(in, "go\n"); err != nil {
		return r, err
	}
	stop := make(chan struct{})
	read := make(chan error, 1)
	go func() { read <- c.run(stop) }()
	var published int
	if _, err := fmt.Fscanf(lines, "%d %d %f %f\n", &published, &r.lost, &r.cpuUS, &r.kib); err != nil {
		return r, fmt.Errorf("result: %w", err)
	}
	close(stop)
	if err := <-read; err != nil {
		return r, err
	}
	r.delivered, r.lasted = c.delivered, s.Lasts
	r.p50, r.p99 = c.quantile(0.50), c.quantile(0.99)
	if r.delivered == 0 {
		return r, fmt.Errorf("nothing was delivered of %d published", published)
	}
	return r, nil
}
