//go:build !wire_previous

package wire

// Version is the newest protocol version this package speaks.
const Version = 3
