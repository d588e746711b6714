package tlsrecord

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/internal/pki"
)

const hang = 5 * time.Minute // longer than anything takes on a machine that is starved

// files are a certificate, its key and its authority.
func files(t *testing.T) *pki.Files {
	t.Helper()
	dir := t.TempDir()
	ca, err := pki.Load(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	f, err := ca.Save(dir, "node", pki.Identity{User: "node", Names: []string{"localhost"}, Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	return &f
}

func configs(t *testing.T) (server, client *tls.Config) { return configsOf(t, files(t)) }

func configsOf(t *testing.T, f *pki.Files) (server, client *tls.Config) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.CA)
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(text) {
		t.Fatal("no authority", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots},
		&tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: "localhost"}
}

// sockets are the two ends of a connection.
func sockets(t *testing.T) (a, b net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if a, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{a, b} {
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(hang))
	}
	return a, b
}

// needOpenSSL skips the test without OpenSSL; hack/test.sh installs it and then requires
// it.
func needOpenSSL(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("openssl")
	switch {
	case err != nil && os.Getenv("ORDERGRID_REQUIRE_OPENSSL") != "":
		t.Fatal(err)
	case err != nil:
		t.Skip("openssl is not installed (apt-get install openssl): records are not checked against it")
	}
	return path
}

// OpenSSL's s_client connects to our server: each suite, with key updates from both sides,
// and its end.
func TestAgainstOpenSSLClient(t *testing.T) {
	openssl, f := needOpenSSL(t), files(t)
	server, _ := configsOf(t, f)
	for _, id := range suites {
		t.Run(tls.CipherSuiteName(id), func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			cmd := exec.CommandContext(t.Context(), openssl, "s_client", "-connect", ln.Addr().String(), "-tls1_3", "-ciphersuites", tls.CipherSuiteName(id),
				"-cert", f.Cert, "-key", f.Key, "-CAfile", f.CA, "-verify_return_error")
			in, out := pipes(t, cmd)
			nc, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			_ = nc.SetDeadline(time.Now().Add(hang))
			s, err := Server(context.Background(), nc, server)
			if err != nil {
				t.Fatal(err)
			}
			if s.State.CipherSuite != id {
				t.Fatalf("suite %s", tls.CipherSuiteName(s.State.CipherSuite))
			}
			p := &peer{t: t, nc: nc, s: s, wire: s.Early}
			for i, command := range []string{"", "k", "K", "", "K"} { // k updates, K asks for an update too
				if command != "" { // a command to s_client
					fmt.Fprintln(in, command)
					out.await(t, "KEYUPDATE")
				}
				line := fmt.Sprintf("line %d of OpenSSL", i)
				fmt.Fprintln(in, line)
				p.await(line)
				answer := fmt.Sprintf("answer %d", i)
				p.send(answer + "\n")
				out.await(t, answer)
			}
			if p.updates == 0 {
				t.Error("no key was updated: this shows nothing of that")
			}
			fmt.Fprintln(in, "Q")
			if err := p.end(); err != io.EOF {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// Our client connects to OpenSSL's s_server, which sends tickets, updates its keys, and
// ends.
func TestAgainstOpenSSLServer(t *testing.T) {
	openssl, f := needOpenSSL(t), files(t)
	_, client := configsOf(t, f)
	for _, id := range suites {
		t.Run(tls.CipherSuiteName(id), func(t *testing.T) {
			port := freePort(t)
			cmd := exec.CommandContext(t.Context(), openssl, "s_server", "-accept", port, "-tls1_3", "-ciphersuites", tls.CipherSuiteName(id),
				"-cert", f.Cert, "-key", f.Key, "-CAfile", f.CA, "-Verify", "1", "-verify_return_error")
			in, out := pipes(t, cmd)
			out.await(t, "ACCEPT")
			nc, err := net.Dial("tcp", "127.0.0.1:"+port)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			_ = nc.SetDeadline(time.Now().Add(hang))
			s, err := Client(context.Background(), nc, client)
			if err != nil {
				t.Fatal(err)
			}
			p := &peer{t: t, nc: nc, s: s, wire: s.Early}
			for i, command := range []string{"", "k", "K", "K"} {
				p.send(fmt.Sprintf("line %d of ours\n", i))
				out.await(t, fmt.Sprintf("line %d of ours", i))
				if command != "" {
					fmt.Fprintln(in, command)
					p.awaitUpdate()
				}
				fmt.Fprintf(in, "answer %d\n", i)
				p.await(fmt.Sprintf("answer %d", i))
			}
			fmt.Fprintln(in, "Q")
			if err := p.end(); err != io.EOF {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// peer is our end of a connection with OpenSSL.
type peer struct {
	t       *testing.T
	nc      net.Conn
	s       *Session
	wire    []byte
	got     []byte
	updates int
}

// more opens what comes next.
func (p *peer) more() error {
	buf := make([]byte, 1<<10)
	n, err := p.nc.Read(buf)
	if n == 0 {
		return err
	}
	keys := p.s.in.secret
	data, rest, err := p.s.Open(p.got, append(p.wire, buf[:n]...))
	p.got, p.wire = data, bytes.Clone(rest)
	if !bytes.Equal(keys, p.s.in.secret) {
		p.updates++
	}
	return err
}

func (p *peer) await(text string) {
	p.t.Helper()
	for !strings.Contains(string(p.got), text) {
		if err := p.more(); err != nil {
			p.t.Fatalf("%v before %q came: %q", err, text, p.got)
		}
	}
}

func (p *peer) awaitUpdate() {
	p.t.Helper()
	for before := p.updates; p.updates == before; {
		if err := p.more(); err != nil {
			p.t.Fatalf("%v before the keys were updated", err)
		}
	}
}

func (p *peer) send(text string) {
	p.t.Helper()
	if _, err := p.nc.Write(p.s.Seal(nil, []byte(text))); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) end() (err error) {
	for err == nil {
		err = p.more()
	}
	return err
}

// output is what a program prints.
type output struct{ lines chan string }

func (o *output) await(t *testing.T, text string) {
	t.Helper()
	limit := time.After(hang)
	for {
		select {
		case line, ok := <-o.lines:
			if !ok {
				t.Fatalf("it ended before it printed %q", text)
			}
			if strings.Contains(line, text) {
				return
			}
		case <-limit:
			t.Fatalf("it does not print %q", text)
		}
	}
}

// pipes starts a program.
func pipes(t *testing.T, cmd *exec.Cmd) (in io.Writer, out *output) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out = &output{lines: make(chan string, 1000)}
	go func() {
		defer close(out.lines)
		for sc := bufio.NewScanner(r); sc.Scan(); {
			t.Log(filepath.Base(cmd.Path), sc.Text())
			out.lines <- sc.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		for range out.lines {
		}
		_ = cmd.Wait()
	})
	return in, out
}

func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}
