package downstream

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/e2e/artifact"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// s3Server is versitygw, an S3 server that keeps objects as files.
var s3Server = artifact.Set{
	Module: "e2e/downstream/s3server", Cache: "s3server", What: "versitygw",
	Mains: []string{"github.com/versity/versitygw/cmd/versitygw"}, Programs: []string{"versitygw"},
}

// EnsureS3 builds the S3 server unless the cache holds it, and returns its path.
func EnsureS3(ctx context.Context, root string, report func(format string, args ...any)) (string, error) {
	dir, err := s3Server.Ensure(ctx, root, report)
	return filepath.Join(dir, "versitygw"), err
}

// S3Options are of a server.
type S3Options struct {
	// Cert and Key are PEM files for TLS; without them the server has none.
	Cert, Key string
}

// S3 is an S3 server of its own, on a port of the loopback interface.
type S3 struct {
	Endpoint          string // http://127.0.0.1:PORT, or https://
	AccessKey, Secret string
	Region            string
	// Data has a directory for each bucket, and a file in it for each object.
	Data string

	bin, dir string
	o        S3Options
	address  string
	port     proc.HeldPorts
	cmd      *exec.Cmd
	ended    chan struct{}
	log      *proc.Tail
}

// NewS3 starts a server without buckets. Remove ends it.
func NewS3(bin string, o S3Options) (_ *S3, err error) {
	s := &S3{bin: bin, o: o, AccessKey: "tests", Secret: rand.Text(), Region: "us-east-1", log: &proc.Tail{}}
	if s.dir, err = os.MkdirTemp("", "ordergrid-s3-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.Remove()
		}
	}()
	s.Data = filepath.Join(s.dir, "data")
	for _, dir := range []string{s.Data, filepath.Join(s.dir, "meta")} {
		if err = os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if s.address, err = s.port.Take("127.0.0.1", 0); err != nil {
		return nil, err
	}
	s.Endpoint = "http://" + s.address
	if o.Cert != "" {
		s.Endpoint = "https://" + s.address
	}
	return s, s.Start()
}

// CreateBucket makes a bucket, while the server runs or not.
func (s *S3) CreateBucket(name string) error { return os.Mkdir(filepath.Join(s.Data, name), 0o700) }

// Start starts the server again, with what it had.
func (s *S3) Start() error {
	args := []string{"--port", s.address, "--region", s.Region, "--quiet"}
	if s.o.Cert != "" {
		args = append(args, "--cert", s.o.Cert, "--key", s.o.Key)
	}
	s.cmd = exec.Command(s.bin, append(args, "posix", "--sidecar", filepath.Join(s.dir, "meta"), s.Data)...)
	s.cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID="+s.AccessKey, "ROOT_SECRET_ACCESS_KEY="+s.Secret)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	s.ended = ended
	go func() {
		s.cmd.Wait() //nolint:errcheck // it is killed
		close(ended)
	}()
	for deadline := time.Now().Add(30 * time.Second); ; {
		conn, err := net.DialTimeout("tcp", s.address, time.Second)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ended:
			return fmt.Errorf("versitygw ended: %s", s.log)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("versitygw does not listen on %s after 30s: %w\n%s", s.address, err, s.log)
		}
	}
}

// Kill ends the server at once.
func (s *S3) Kill() {
	if s.cmd != nil && s.cmd.Process != nil {
		s.cmd.Process.Kill() //nolint:errcheck // it may have ended
		<-s.ended
		s.cmd = nil
	}
}

// Remove ends the server and deletes what it has.
func (s *S3) Remove() {
	s.Kill()
	s.port.Release()
	os.RemoveAll(s.dir) //nolint:errcheck // a temporary directory
}
