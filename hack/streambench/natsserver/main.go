// Command natsserver is the NATS server in a round of hack/streambench: over WebSocket, and published to over a connection
// within the process, as the other servers are. It is a module of its own, so that none of its dependencies becomes one of
// the product's.
package main

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/ordergrid/ordergrid/hack/streambench/rounds"
)

func main() {
	var s rounds.Shape
	s.Register(flag.CommandLine)
	flag.Parse()
	log.SetFlags(0)
	err := s.Check()
	if err == nil {
		err = rounds.Serve(&nats{shape: &s}, &s)
	}
	if err != nil {
		log.Fatal("natsserver: ", err)
	}
}

// nats is the server, and the connection that publishes.
type nats struct {
	shape *rounds.Shape
	s     *server.Server
	c     net.Conn
	batch []byte
	pongs chan struct{}
}

// Listen starts the server.
func (n *nats) Listen() (string, error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	n.s, err = server.NewServer(&server.Options{DontListen: true, NoLog: true, NoSigs: true, MaxConn: 100_000, PingInterval: time.Hour,
		Websocket: server.WebsocketOpts{Host: "127.0.0.1", Port: port, NoTLS: true, HandshakeTimeout: time.Minute}})
	if err != nil {
		return "", err
	}
	n.s.Start()
	if !n.s.ReadyForConnections(10 * time.Second) {
		return "", errors.New("the NATS server does not start within 10s")
	}
	if n.c, err = n.s.InProcessConn(); err != nil {
		return "", err
	}
	n.pongs = make(chan struct{}, 1)
	go n.read()
	if _, err := io.WriteString(n.c, `CONNECT {"verbose":false,"pedantic":false}`+"\r\n"); err != nil {
		return "", err
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), n.flush()
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close() //nolint:errcheck // it never fails
	return l.Addr().(*net.TCPAddr).Port, nil
}

// read passes over what the server says, but for the answer to a PING.
func (n *nats) read() {
	b := make([]byte, 64<<10)
	for {
		k, err := n.c.Read(b)
		if err != nil {
			return
		}
		if strings.Contains(string(b[:k]), "PONG") {
			n.pongs <- struct{}{}
		}
	}
}

// flush waits until the server has taken what was published.
func (n *nats) flush() error {
	if _, err := io.WriteString(n.c, "PING\r\n"); err != nil {
		return err
	}
	select {
	case <-n.pongs:
		return nil
	case <-time.After(time.Minute):
		return errors.New("the NATS server does not answer a PING within 1m")
	}
}

// Publish publishes the topics of one millisecond in one write.
func (n *nats) Publish(topics []int) {
	payload := make([]byte, n.shape.Payload)
	binary.BigEndian.PutUint64(payload, uint64(rounds.Now()))
	n.batch = n.batch[:0]
	for _, topic := range topics {
		n.batch = fmt.Appendf(n.batch, "PUB %s %d\r\n", rounds.TopicOf(topic), len(payload))
		n.batch = append(append(n.batch, payload...), "\r\n"...)
	}
	if _, err := n.c.Write(n.batch); err != nil {
		panic(err)
	}
}

// Finish waits until all is taken. NATS disconnects a client that is too slow, which ends the round.
func (n *nats) Finish() int {
	if err := n.flush(); err != nil {
		panic(err)
	}
	time.Sleep(time.Second) // what is taken is on its way to clients
	return 0
}
