//go:build tools

// Package s3server pins the S3 server that tests of the archive run: versitygw, a gateway over a directory. It is a
// module of its own, so that none of its dependencies becomes one of the product's.
package s3server

import _ "github.com/versity/versitygw/cmd/versitygw"
