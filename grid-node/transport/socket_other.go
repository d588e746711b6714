//go:build !linux

package transport

// tcpInfo is not available here: each system has its own structure.
func tcpInfo(int) (*TCPInfo, error) { return nil, nil }
