package archive

import (
	"io"
	"net/url"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/downstream"
)

func readAll(r io.Reader) ([]byte, error) { return io.ReadAll(r) }

// stores are those that tests of all of them run with; each call makes an empty one.
func stores(t *testing.T) map[string]func(t *testing.T) Store {
	t.Helper()
	server := s3(t)
	return map[string]func(t *testing.T) Store{
		"directory": func(t *testing.T) Store { return newDir(t) },
		"bucket":    func(t *testing.T) Store { return newBucket(t, server) },
	}
}

var (
	s3Once sync.Once
	s3Bin  string
	errS3  error
)

// s3 is a server of its own for a test.
func s3(t testing.TB) *downstream.S3 { return s3With(t, downstream.S3Options{}) }

func s3With(t testing.TB, o downstream.S3Options) *downstream.S3 {
	t.Helper()
	s3Once.Do(func() { s3Bin, errS3 = downstream.EnsureS3(t.Context(), "../..", t.Logf) })
	if errS3 != nil {
		t.Fatal(errS3)
	}
	s, err := downstream.NewS3(s3Bin, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Remove)
	return s
}

var buckets atomic.Int64

func newBucket(t testing.TB, server *downstream.S3) Store {
	t.Helper()
	name := "orders-" + strconv.FormatInt(buckets.Add(1), 10)
	if err := server.CreateBucket(name); err != nil {
		t.Fatal(err)
	}
	s, err := OpenBucket(BucketOptions{Bucket: name, Prefix: "prod", Endpoint: server.Endpoint, Region: server.Region, CredentialsDir: credentialsOf(t, server.AccessKey, server.Secret)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// credentialsOf is a directory as a Secret is mounted.
func credentialsOf(t testing.TB, key, secret string) string {
	t.Helper()
	dir := t.TempDir()
	for name, value := range map[string]string{"access-key-id": key, "secret-access-key": secret + "\n"} {
		if err := os.WriteFile(dir+"/"+name, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// childURLOf is the URL for another process, and its credentials in the environment.
func childURLOf(t testing.TB, s Store) string {
	t.Helper()
	b, ok := s.(*bucket)
	if !ok {
		return s.String()
	}
	v, err := bucketCredentials(b.o.CredentialsDir).GetWithContext(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", v.AccessKeyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", v.SecretAccessKey)
	return "s3://" + b.o.Bucket + "/" + b.o.Prefix + "?" + url.Values{"endpoint": {b.o.Endpoint}, "region": {b.o.Region}}.Encode()
}
