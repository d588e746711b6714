//go:build !linux

package client

import "net"

const haveRawIO = false

func newRawStream(tcp *net.TCPConn, _ IO) (stream, error) { return &netStream{conn: tcp}, nil }
