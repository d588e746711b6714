//go:build !linux

package transport

import "net"

// tryWriter is for Linux; elsewhere the writer's goroutine writes everything.
type tryWriter struct{}

func newTryWriter(net.Conn) *tryWriter { return nil }

func (*tryWriter) Write([]byte) (int, error) { return 0, nil }

// unsentOf is not available here.
func unsentOf(net.Conn) int { return 0 }

// goneFrom is not available here.
func goneFrom(net.Conn) bool { return false }

func setSendBufferOf(nc *net.TCPConn, bytes int) { _ = nc.SetWriteBuffer(bytes) }
