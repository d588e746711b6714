package hostile

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// What a stranger does with each of its connections.
var behaviours = []struct {
	name string
	do   func(c net.Conn)
}{
	{"idle", wait},
	{"hello byte by byte", func(c net.Conn) { drip(c, hello()) }},
	{"half a TLS handshake", func(c net.Conn) { drip(c, clientHello()[:120]) }},
	{"TLS, then nothing", func(c net.Conn) { overTLS(c, nil) }},
	{"TLS, Hello, then nothing", func(c net.Conn) { overTLS(c, hello()) }},
	{"TLS, Hello, half a token", func(c net.Conn) { overTLS(c, append(hello(), authenticate()[:40]...)) }},
	{"TLS, a forged token", func(c net.Conn) { overTLS(c, append(hello(), authenticate()...)) }},
}

// dripEvery is between two bytes of those who are slow on purpose.
const dripEvery = 300 * time.Millisecond

// wait reads until the other end has had enough.
func wait(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

func drip(c net.Conn, b []byte) {
	gone := make(chan struct{})
	go func() { wait(c); close(gone) }()
	for len(b) > 0 {
		if _, err := c.Write(b[:1]); err != nil {
			break
		}
		b = b[1:]
		select {
		case <-gone:
			return
		case <-time.After(dripEvery):
		}
	}
	<-gone
}

// overTLS is for clients without a certificate, or with one without permissions.
func overTLS(c net.Conn, b []byte) {
	t := tls.Client(c, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}) //nolint:gosec // a stranger trusts any server
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := t.Write(b); err != nil {
		return
	}
	wait(t)
}

func hello() []byte {
	return wire.AppendHello(nil, &wire.Hello{MinVersion: wire.MinVersion, MaxVersion: wire.Version, Role: wire.RoleClient, Member: []byte("stranger")})
}

func authenticate() []byte {
	return wire.AppendAuthenticate(nil, &wire.Authenticate{ReqID: 1, Token: []byte("eyJhbGciOiJub25lIn0.eyJhdWQiOlsib3JkZXJncmlkLmRldiJdfQ.Zm9yZ2Vk" + strings.Repeat("A", 800))})
}

// clientHello is a TLS client's first message.
var clientHello = sync.OnceValue(func() []byte {
	a, b := net.Pipe()
	defer func() { _ = a.Close() }()
	go func() { _ = tls.Client(b, &tls.Config{InsecureSkipVerify: true}).Handshake() }() //nolint:gosec // only its first words are wanted
	buf := make([]byte, 4096)
	n, _ := a.Read(buf)
	if !secure.LooksLikeTLS(buf[:n]) {
		panic("no ClientHello")
	}
	return buf[:n]
})

// asStranger makes the test binary one of them: so many connections, to endpoints.
const asStranger = "ORDERGRID_HOSTILE_STRANGER"

// tally is what the strangers have to tell, by behaviour.
type tally struct {
	Opened, Refused int64            // connections made; not even made
	Ended           map[string]int64 // disconnected by the node
	Longest         map[string]int64 // the longest life of a connection, ms
}

type order struct {
	Endpoints   []string
	Connections int
	// Pause is after how long, ms, a stranger comes back that was disconnected. Without one
	// they are a flood of handshakes, which costs this machine both ends of each.
	Pause int
}

// beStranger holds so many connections open, always, until its standard input ends.
func beStranger(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var opened, refused atomic.Int64
	var mu sync.Mutex
	t := tally{Ended: map[string]int64{}, Longest: map[string]int64{}}
	var wg sync.WaitGroup
	for i := range o.Connections {
		b := behaviours[i%len(behaviours)]
		wg.Go(func() {
			// They do not all come in the same moment, and do not all come back in one.
			time.Sleep(time.Duration(o.Pause) * time.Millisecond * time.Duration(i) / time.Duration(o.Connections))
			for ctx.Err() == nil {
				c, err := new(net.Dialer).DialContext(ctx, "tcp", o.Endpoints[i%len(o.Endpoints)])
				if err != nil {
					refused.Add(1)
					time.Sleep(dripEvery)
					continue
				}
				stop := context.AfterFunc(ctx, func() { _ = c.Close() })
				opened.Add(1)
				began := time.Now()
				b.do(c)
				stop()
				_ = c.Close()
				lived := time.Since(began)
				if ctx.Err() == nil {
					mu.Lock()
					t.Ended[b.name]++
					t.Longest[b.name] = max(t.Longest[b.name], lived.Milliseconds())
					mu.Unlock()
				}
				select {
				case <-ctx.Done():
				case <-time.After(time.Duration(o.Pause) * time.Millisecond):
				}
			}
		})
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	wg.Wait()
	t.Opened, t.Refused = opened.Load(), refused.Load()
	return json.NewEncoder(os.Stdout).Encode(t)
}

// crowd is a process of strangers.
type crowd struct {
	cmd *exec.Cmd
	in  io.Closer
	out *json.Decoder
}

func letLoose(t *testing.T, o order) *crowd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), asStranger+"="+string(text))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	c := &crowd{cmd: cmd, in: in}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }) // if it has not gone home
	ready := make([]byte, len("ready\n"))
	if _, err := io.ReadFull(out, ready); err != nil || string(ready) != "ready\n" {
		t.Fatalf("strangers do not begin: %q, %v", ready, err)
	}
	c.out = json.NewDecoder(out)
	return c
}

// goHome ends them and returns what they tell.
func (c *crowd) goHome(t *testing.T) (got tally) {
	t.Helper()
	_ = c.in.Close()
	if err := c.out.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return got
}
