// Package quickfixj starts QuickFIX/J, the engine of most Java houses, as the counterparty
// of a session: a process of the JDK's source launcher, with a class path that Maven
// fetches.
package quickfixj

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/e2e/artifact"
	"github.com/ordergrid/ordergrid/internal/checkout"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// ErrUnavailable: Java or Maven is not there, or fetching failed.
var ErrUnavailable = errors.New("QuickFIX/J cannot be had here")

// Classpath fetches QuickFIX/J with Maven.
func Classpath(ctx context.Context) (string, error) {
	path, err := artifact.Classpath(ctx, "e2e/fix/quickfixj/pom.xml", "3 MB")
	if errors.Is(err, artifact.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return path, err
}

// Process is a counterparty.
type Process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	Lines chan string // what it prints; closed at its end
	said  proc.Tail
}

// Options of a counterparty.
type Options struct {
	BeginString, Sender, Target string
	Addresses                   []string // host:port, tried one after the other
	User, Password              string   // 553, 554; empty: without
	TrustStore                  string   // from TrustStore; empty: without TLS
	Transport, Dictionary       string   // XML files of FIXT 1.1 and FIX 5.0 SP2 that messages are checked by; empty: they are not
	Orders                      int      // 0: until Enough
	Pace                        time.Duration
}

// storePassword is that of a file that keeps no secret.
const storePassword = "changeit"

// TrustStore writes the certificates of a PEM file in the form that Java reads, below dir.
func TrustStore(ctx context.Context, dir, pem string) (string, error) {
	path := filepath.Join(dir, "trust.p12")
	out, err := exec.CommandContext(ctx, "keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", pem, "-keystore", path, "-storetype", "PKCS12", "-storepass", storePassword).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("keytool: %w: %s", err, out)
	}
	return path, nil
}

// Start starts a counterparty, whose orders are SENDER-0, SENDER-1 and so on.
func Start(classpath string, o Options) (*Process, error) {
	root, err := checkout.Root()
	if err != nil {
		return nil, err
	}
	args := []string{"-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", classpath, filepath.Join(root, "e2e/fix/quickfixj/Counterparty.java"),
		"begin=" + o.BeginString, "sender=" + o.Sender, "target=" + o.Target, "addresses=" + strings.Join(o.Addresses, ","),
		"orders=" + strconv.Itoa(o.Orders), "pace=" + strconv.FormatInt(o.Pace.Milliseconds(), 10)}
	if o.User != "" {
		args = append(args, "user="+o.User)
	}
	if o.Dictionary != "" {
		args = append(args, "transport="+o.Transport, "dictionary="+o.Dictionary)
	}
	if o.TrustStore != "" {
		args = append(args, "truststore="+o.TrustStore, "store="+storePassword)
	}
	p := &Process{Lines: make(chan string, 4096)}
	p.cmd = exec.Command("java", args...)
	p.cmd.Env = append(os.Environ(), "COUNTERPARTY_PASSWORD="+o.Password)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.Stderr = &p.said
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.Lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.Lines <- s.Text()
		}
	}()
	return p, nil
}

// Enough ends new orders of one that was started without a number of them.
func (p *Process) Enough() error {
	_, err := io.WriteString(p.in, "\n")
	return err
}

// Stop ends it.
func (p *Process) Stop() {
	_ = p.in.Close()
	late := time.AfterFunc(10*time.Second, func() { _ = p.cmd.Process.Kill() })
	for range p.Lines {
	}
	_ = p.cmd.Wait() // its exit status is not used
	late.Stop()
}

// Said returns the end of what it wrote to its error output.
func (p *Process) Said() string { return p.said.String() }
