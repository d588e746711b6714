package archive

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// The store refuses a second object of a name: all of the archive's fencing rests on it.
func TestCreateIsExclusive(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			s := s(t)
			if err := s.Create(t.Context(), "g/p0/tail/a", []byte("first")); err != nil {
				t.Fatal(err)
			}
			if err := s.Create(t.Context(), "g/p0/tail/a", []byte("second")); !errors.Is(err, ErrExists) {
				t.Errorf("the error is %v, allowed: ErrExists", err)
			}
			if got := read(t, s, "g/p0/tail/a"); string(got) != "first" {
				t.Errorf("the object is %q", got)
			}
		})
	}
}

// forgetful is a store that overwrites, as S3-compatible ones did before conditional puts.
type forgetful struct{ Store }

func (s forgetful) Create(ctx context.Context, name string, data []byte) error {
	if err := s.Delete(ctx, name); err != nil {
		return err
	}
	return s.Store.Create(ctx, name, data)
}

func TestStoreThatOverwritesIsRefused(t *testing.T) {
	_, err := NewTarget(forgetful{newDir(t)}, small).Open(t.Context(), part)
	if p := permanent(t, err); !strings.Contains(p.Error(), "If-None-Match") {
		t.Error(err)
	}
}

func TestBucketErrors(t *testing.T) {
	server := s3(t)
	good := BucketOptions{Bucket: newBucket(t, server).(*bucket).o.Bucket, Endpoint: server.Endpoint, Region: server.Region, CredentialsDir: credentialsOf(t, server.AccessKey, server.Secret)}
	for name, c := range map[string]struct {
		change func(*BucketOptions)
		want   string
	}{
		"secret":      {func(o *BucketOptions) { o.CredentialsDir = credentialsOf(t, server.AccessKey, "wrong") }, "check access key, secret and region"},
		"key":         {func(o *BucketOptions) { o.CredentialsDir = credentialsOf(t, "unknown", server.Secret) }, "check access key, secret and region"},
		"credentials": {func(o *BucketOptions) { o.CredentialsDir = t.TempDir() }, "the files access-key-id and secret-access-key"},
		"bucket":      {func(o *BucketOptions) { o.Bucket = "nowhere" }, "create the bucket"},
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			c.change(&o)
			s, err := OpenBucket(o)
			if err != nil {
				t.Fatal(err)
			}
			_, err = NewTarget(s, small).Open(t.Context(), part)
			if p := permanent(t, err); !strings.Contains(p.Error(), c.want) {
				t.Error(err)
			}
			if err != nil && strings.Contains(err.Error(), server.Secret) {
				t.Errorf("the secret is in the message: %v", err)
			}
		})
	}
}

// A server that is gone is no permanent error, and nothing is lost by it.
func TestServerThatIsDown(t *testing.T) {
	server := s3(t)
	s := newBucket(t, server)
	l := logOf(t, 60)
	w := openWriter(t, s, small)
	write(t, w, l, 1, 20, 10)
	server.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	err := w.Write(ctx, l.batch(21, 30))
	var p *sink.PermanentError
	if err == nil || errors.As(err, &p) {
		t.Fatalf("the error is %v, allowed: one that may pass", err)
	}
	w.Close()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	w = openWriter(t, s, small)
	write(t, w, l, w.Position().Seq+1, 60, 10)
	holds(t, s, l, 1, 60)
}

// With TLS the server's certificate is checked: by caFile it is known, without it is not.
func TestBucketByTLS(t *testing.T) {
	dir := t.TempDir()
	ca, err := pki.Load(dir, "archive tests")
	if err != nil {
		t.Fatal(err)
	}
	files, err := ca.Save(dir, "server", pki.Identity{User: "s3", Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	server := s3With(t, downstream.S3Options{Cert: files.Cert, Key: files.Key})
	if err := server.CreateBucket("secure"); err != nil {
		t.Fatal(err)
	}
	o := BucketOptions{Bucket: "secure", Endpoint: server.Endpoint, Region: server.Region, CredentialsDir: credentialsOf(t, server.AccessKey, server.Secret)}
	s, err := OpenBucket(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewTarget(s, small).Open(t.Context(), part); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("the error is %v, allowed: an unknown certificate", err)
	}
	o.CAFile = files.CA
	if s, err = OpenBucket(o); err != nil {
		t.Fatal(err)
	}
	l := logOf(t, 30)
	write(t, openWriter(t, s, small), l, 1, 30, 10)
	holds(t, s, l, 1, 30)
}
