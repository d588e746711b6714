package archive

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/ordergrid/ordergrid/gateway/sink"
)

// URLHelp is the text about archives' URLs in --help.
const URLHelp = `URL is a directory, as a path or as file:///DIR, or a bucket of an S3-compatible store:
s3://BUCKET[/PREFIX][?endpoint=https://HOST:PORT&region=REGION&caFile=FILE]. Credentials are never in
it: they are in the files access-key-id and secret-access-key of --credentials-dir, else those that S3
clients take (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_SHARED_CREDENTIALS_FILE, the role of the pod).`

// OpenURL returns the store that a URL names. credentialsDir is for buckets, see BucketOptions.
func OpenURL(text, credentialsDir string) (Store, error) {
	bad := func(what string) error {
		return &sink.PermanentError{What: "archive: " + what, Remedy: "allowed: a directory, file:///DIR, s3://BUCKET[/PREFIX][?endpoint=URL&region=REGION&caFile=FILE]"}
	}
	if !strings.Contains(text, "://") {
		if text == "" {
			return nil, bad("an empty URL")
		}
		return OpenDir(text)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, bad("a URL that cannot be parsed") // it may have a secret in it
	}
	if u.User != nil {
		return nil, bad(fmt.Sprintf("the URL of %s has a user in it, and credentials are never in one", u.Host))
	}
	switch u.Scheme {
	case "file":
		if u.Host != "" || u.Path == "" {
			return nil, bad(fmt.Sprintf("URL %q", text))
		}
		return OpenDir(u.Path)
	case "s3":
		q := u.Query()
		for name := range q {
			if name != "endpoint" && name != "region" && name != "caFile" {
				return nil, bad(fmt.Sprintf("parameter %q of the URL", name))
			}
		}
		if u.Host == "" {
			return nil, bad(fmt.Sprintf("URL %q names no bucket", text))
		}
		return OpenBucket(BucketOptions{Bucket: u.Host, Prefix: u.Path, Endpoint: q.Get("endpoint"), Region: q.Get("region"), CAFile: q.Get("caFile"), CredentialsDir: credentialsDir})
	}
	return nil, bad(fmt.Sprintf("scheme %q", u.Scheme))
}
