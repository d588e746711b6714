package archive

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/ordergrid/ordergrid/gateway/sink"
)

// BucketOptions are those of a bucket of an S3-compatible store.
type BucketOptions struct {
	Bucket, Prefix string
	// Endpoint is a URL; https://s3.amazonaws.com if empty. http:// sends orders in the clear.
	Endpoint string
	Region   string
	// CredentialsDir has the files access-key-id and secret-access-key, as a Secret is mounted; session-token if there
	// is one. They are read again every minute. If empty: the environment (AWS_ACCESS_KEY_ID, ...), the file of
	// AWS_SHARED_CREDENTIALS_FILE, the role of the pod or machine, in this order.
	CredentialsDir string
	// CAFile has certificates that the endpoint's is checked by, beside those of the system.
	CAFile string
}

type bucket struct {
	o      BucketOptions
	client *minio.Client
	http   *http.Transport
}

const (
	bucketTimeout = 30 * time.Second // of a request
	bucketRetries = 3                // of a request, by the client
)

// OpenBucket returns the archive in a bucket. It does not connect yet.
func OpenBucket(o BucketOptions) (Store, error) {
	if o.Endpoint == "" {
		o.Endpoint = "https://s3.amazonaws.com"
	}
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		return nil, &sink.PermanentError{What: fmt.Sprintf("archive: endpoint %q", o.Endpoint), Remedy: "allowed: https://HOST[:PORT], or http:// where the network may read the orders"}
	}
	roots, err := caPool(o.CAFile)
	if err != nil {
		return nil, err
	}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second,
		ResponseHeaderTimeout: bucketTimeout, DisableCompression: true, ForceAttemptHTTP2: false,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
	}
	c, err := minio.New(u.Host, &minio.Options{
		Creds: bucketCredentials(o.CredentialsDir), Secure: u.Scheme == "https", Region: o.Region, Transport: t, MaxRetries: bucketRetries,
	})
	if err != nil {
		return nil, &sink.PermanentError{What: fmt.Sprintf("archive: endpoint %q", o.Endpoint), Remedy: "allowed: https://HOST[:PORT]", Err: err}
	}
	o.Prefix = strings.Trim(o.Prefix, "/")
	if o.Prefix != "" {
		o.Prefix += "/"
	}
	return &bucket{o: o, client: c, http: t}, nil
}

func caPool(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, &sink.PermanentError{What: "archive: caFile " + file, Remedy: "name a readable file with certificates in PEM", Err: err}
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, &sink.PermanentError{What: "archive: caFile " + file + " has no certificate", Remedy: "allowed: certificates in PEM"}
	}
	return pool, nil
}

func bucketCredentials(dir string) *credentials.Credentials {
	if dir != "" {
		return credentials.New(&secretFiles{dir: dir})
	}
	return credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: &http.Client{Timeout: 5 * time.Second}}})
}

// secretFiles reads credentials from the files of a Secret.
type secretFiles struct {
	dir  string
	read time.Time
}

func (f *secretFiles) Retrieve() (credentials.Value, error) {
	v := credentials.Value{SignerType: credentials.SignatureV4}
	for _, file := range []struct {
		name     string
		to       *string
		optional bool
	}{{"access-key-id", &v.AccessKeyID, false}, {"secret-access-key", &v.SecretAccessKey, false}, {"session-token", &v.SessionToken, true}} {
		b, err := os.ReadFile(filepath.Join(f.dir, file.name))
		if err != nil && (!file.optional || !errors.Is(err, fs.ErrNotExist)) {
			return v, &sink.PermanentError{What: "archive: credentials in " + f.dir, Remedy: "allowed: the files access-key-id and secret-access-key", Err: err}
		}
		*file.to = strings.TrimSpace(string(b))
	}
	f.read = time.Now()
	return v, nil
}

func (f *secretFiles) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	return f.Retrieve()
}

func (f *secretFiles) IsExpired() bool { return time.Since(f.read) > time.Minute }

func (s *bucket) String() string { return "s3://" + s.o.Bucket + "/" + s.o.Prefix }

func (s *bucket) Close() error {
	s.http.CloseIdleConnections()
	return nil
}

// Create puts an object with If-None-Match: *, which a store answers with 412 where there is one.
func (s *bucket) Create(ctx context.Context, name string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, 2*bucketTimeout)
	defer cancel()
	o := minio.PutObjectOptions{ContentType: "application/octet-stream", DisableMultipart: true, SendContentMd5: true}
	o.SetMatchETagExcept("*")
	_, err := s.client.PutObject(ctx, s.o.Bucket, s.o.Prefix+name, bytes.NewReader(data), int64(len(data)), o)
	if r := minio.ToErrorResponse(err); r.StatusCode == http.StatusPreconditionFailed {
		return ErrExists
	}
	fault("s3-put")
	return s.failure(err)
}

func (s *bucket) Open(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	var o minio.GetObjectOptions
	if offset > 0 {
		if err := o.SetRange(offset, 0); err != nil {
			return nil, err
		}
	}
	core := minio.Core{Client: s.client}
	r, _, _, err := core.GetObject(ctx, s.o.Bucket, s.o.Prefix+name, o)
	if err != nil {
		return nil, s.failure(err)
	}
	return r, nil
}

func (s *bucket) Exists(ctx context.Context, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	_, err := s.client.StatObject(ctx, s.o.Bucket, s.o.Prefix+name, minio.StatObjectOptions{})
	if err = s.failure(err); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (s *bucket) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		for o := range s.client.ListObjectsIter(ctx, s.o.Bucket, minio.ListObjectsOptions{Prefix: s.o.Prefix + prefix, Recursive: true}) {
			if o.Err != nil {
				yield(Object{}, s.failure(o.Err))
				return
			}
			if !yield(Object{Name: strings.TrimPrefix(o.Key, s.o.Prefix), Size: o.Size}, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(Object{}, err)
		}
	}
}

// Folders lists with a delimiter.
func (s *bucket) Folders(ctx context.Context, prefix string) (names []string, err error) {
	for o := range s.client.ListObjectsIter(ctx, s.o.Bucket, minio.ListObjectsOptions{Prefix: s.o.Prefix + prefix}) {
		if o.Err != nil {
			return nil, s.failure(o.Err)
		}
		if name, ok := strings.CutSuffix(strings.TrimPrefix(o.Key, s.o.Prefix+prefix), "/"); ok {
			names = append(names, name)
		}
	}
	return names, ctx.Err()
}

func (s *bucket) Delete(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, bucketTimeout)
	defer cancel()
	return s.failure(s.client.RemoveObject(ctx, s.o.Bucket, s.o.Prefix+name, minio.RemoveObjectOptions{}))
}

// failure tells what an administrator has to mend from what may pass.
func (s *bucket) failure(err error) error {
	if err == nil {
		return nil
	}
	var permanent *sink.PermanentError
	if errors.As(err, &permanent) {
		return permanent
	}
	r := minio.ToErrorResponse(err)
	if r.Code == minio.NoSuchKey {
		return fmt.Errorf("%s: %w", s, fs.ErrNotExist)
	}
	remedy := remedies[r.Code]
	if remedy == "" && passing(r.StatusCode, r.Code) {
		return fmt.Errorf("archive %s: %w", s, err)
	} else if remedy == "" {
		remedy = "check endpoint, bucket, region and credentials, and what they are allowed"
	}
	return &sink.PermanentError{What: "archive " + s.String(), Remedy: remedy, Err: err}
}

// passing reports whether a later attempt may succeed: the request itself was not found wrong.
func passing(status int, code string) bool {
	return status < 400 || status >= 500 || status == http.StatusRequestTimeout || status == http.StatusConflict || status == http.StatusTooManyRequests || code == "RequestTimeout"
}

const (
	checkKeys   = "check access key, secret and region; files of a Secret are read again every minute"
	checkRights = "the credentials need s3:ListBucket of the bucket, and s3:GetObject, s3:PutObject and s3:DeleteObject of its objects"
	checkRegion = "name the bucket's region"
	otherStore  = "take a store with ListObjectsV2 and conditional puts"
)

// remedies by the store's error codes.
var remedies = map[string]string{
	"NoSuchBucket": "create the bucket",
	"AccessDenied": checkRights, "AllAccessDisabled": checkRights, "AccountProblem": checkRights,
	"InvalidAccessKeyId": checkKeys, "SignatureDoesNotMatch": checkKeys, "InvalidToken": checkKeys, "InvalidTokenId": checkKeys,
	"ExpiredToken": checkKeys, "AuthorizationHeaderMalformed": checkKeys, "InvalidSecurity": checkKeys, "XAdminUserNotFound": checkKeys,
	"PermanentRedirect": checkRegion, "IllegalLocationConstraintException": checkRegion,
	"RequestTimeTooSkewed": "set the clock of this machine or of the store",
	"InvalidBucketName":    otherStore, "NotImplemented": otherStore,
}
