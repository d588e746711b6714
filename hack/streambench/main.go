// Command streambench compares the stream server with a floor: a bare epoll writer that sends pre-framed messages to the
// sockets that want them and knows nothing else. Both get the same clients, topics, messages and rate, in turns; each is a
// process of its own, whose CPU and memory are read, and this process has the clients.
//
//	go run ./hack/streambench --clients 1000 --rate 100000 --flush 0s
//
// A table row: messages delivered a second, latency from publishing to the client's read, the server's CPU per delivered
// message, and its memory per client, connected and subscribed, without the kernel's.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// shape is what is measured.
type shape struct {
	clients, topics, each int // each client subscribes to so many topics
	payload               int
	rate                  int // messages delivered a second
	flush, lasts          time.Duration
}

// published is how many messages are published for n delivered.
func (s *shape) published(n int) float64 {
	return float64(n) * float64(s.topics) / float64(s.clients*s.each)
}

// topicOf is the topic of a number, always of the same length.
func topicOf(n int) string { return fmt.Sprintf("t.%05d", n) }

// wants are the topics of a client.
func (s *shape) wants(client int) []int {
	list := make([]int, s.each)
	for i := range list {
		list[i] = (client*s.each + i) % s.topics
	}
	return list
}

// frameSize is that of a binary message: header, fixed part, topic, payload.
func (s *shape) frameSize() int {
	n := 23 + len(topicOf(0)) + s.payload
	if n < 126 {
		return 2 + n
	}
	return 4 + n
}

func main() {
	var s shape
	serve := flag.String("serve", "", "internal: floor or server")
	rounds := flag.Int("rounds", 3, "rounds, each of the floor and the server")
	flag.IntVar(&s.clients, "clients", 1000, "clients")
	flag.IntVar(&s.topics, "topics", 100, "topics, 1 to 100000")
	flag.IntVar(&s.each, "each", 5, "topics of each client")
	flag.IntVar(&s.payload, "payload", 100, "bytes of a message, at least 8")
	flag.IntVar(&s.rate, "rate", 100_000, "messages delivered a second, over all clients")
	flag.DurationVar(&s.flush, "flush", 0, "flush interval of the subscriptions, in whole milliseconds; 0: at once")
	flag.DurationVar(&s.lasts, "duration", 5*time.Second, "of a round")
	flag.Parse()
	log.SetFlags(0)
	if s.clients < 1 || s.topics < 1 || s.topics > 100_000 || s.each < 1 || s.each > s.topics || s.payload < 8 || s.payload > 32<<10 || s.rate < 1 || s.flush%time.Millisecond != 0 {
		log.Fatalf("streambench: %+v, allowed: see --help", s)
	}
	var err error
	if *serve != "" {
		err = child(*serve, &s)
	} else {
		err = compare(&s, *rounds)
	}
	if err != nil {
		log.Fatal("streambench: ", err)
	}
}

func compare(s *shape, rounds int) error {
	fmt.Printf("%d clients, %d of %d topics each, %d bytes, %d/s offered, flush %s, %s a round\n", s.clients, s.each, s.topics, s.payload, s.rate, s.flush, s.lasts)
	fmt.Printf("%-8s %12s %10s %10s %16s %14s\n", "", "delivered/s", "p50 ms", "p99 ms", "CPU us/delivered", "KiB a client")
	var ratios []float64
	for range rounds {
		var cpu [2]float64
		for i, kind := range []string{"floor", "server"} {
			r, err := round(s, kind)
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			cpu[i] = r.cpuUS / float64(r.delivered)
			fmt.Printf("%-8s %12.0f %10.2f %10.2f %16.2f %14.2f\n", kind, float64(r.delivered)/r.lasted.Seconds(), r.p50.Seconds()*1e3, r.p99.Seconds()*1e3, cpu[i], r.kib)
			if r.lost > 0 {
				fmt.Printf("%-8s left out %d messages\n", "", r.lost)
			}
		}
		ratios = append(ratios, cpu[1]/cpu[0])
	}
	slices.Sort(ratios)
	fmt.Printf("CPU of the server by that of the floor, median of %d rounds: %.2f (%.2f to %.2f)\n", rounds, ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
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
func round(s *shape, kind string) (r result, err error) {
	cmd := exec.Command(os.Args[0], append(slices.Clone(os.Args[1:]), "--serve", kind)...)
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
	c, err := connect(s, kind, addr)
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
	r.delivered, r.lasted = c.delivered, s.lasts
	r.p50, r.p99 = c.quantile(0.50), c.quantile(0.99)
	if r.delivered == 0 {
		return r, fmt.Errorf("nothing was delivered of %d published", published)
	}
	return r, nil
}

// now is the machine's monotonic clock, the same for both processes.
func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}
