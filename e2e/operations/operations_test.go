//go:build e2e

package operations

import (
	"context"
	"testing"
)

// shared is prepared once for all tests of the package.
var shared *field

// on lends the field to one test.
func on(t *testing.T) (context.Context, *field) {
	t.Helper()
	f := *shared
	f.T = t
	return t.Context(), &f
}

// TestOperations prepares the cluster once. Each part can be chosen with -run TestOperations/NAME. A part makes its own grid
// (field.grow), puts 1,000 orders a second on it (field.record), does things to it (recorder.step) and judges
// (recorder.finish): no order may fail, be lost, or be there twice. No figure of time decides.
func TestOperations(t *testing.T) {
	shared = prepare(t.Context(), t)
	defer func() { shared = nil }()
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"rolling-update", rollingUpdate},
		{"node-drain", nodeDrain},
		{"node-drain-third-copy", drainWithThirdCopy},
		{"bad-version", badVersion},
		{"objective", objective},
		{"certificate-rotation", rotateCertificates},
		{"tls-on-and-off", tlsOnAndOff},
		{"upgrade-from-previous", upgradeFromPrevious},
		{"replicas", twoToThreeToTwo},
		{"replicas-one", oneToTwo},
		{"more-shards", moreShards},
		{"shards", shards},
		{"rebalance-under-fire", rebalanceUnderFire},
		{"regions", regions},
		{"streams", streams},
	} {
		t.Run(part.name, part.run)
	}
}
