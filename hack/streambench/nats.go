package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ordergrid/ordergrid/hack/streambench/rounds"
)

// natsModule has the NATS server, which nothing else of the repository links.
const natsModule = "hack/streambench/natsserver"

// buildNATS builds the NATS server into a directory.
func buildNATS(ctx context.Context, dir string) (string, error) {
	if _, err := os.Stat(filepath.Join(natsModule, "go.mod")); err != nil {
		return "", fmt.Errorf("--nats: %w, allowed: in the root of the repository", err)
	}
	exe := filepath.Join(dir, "natsserver")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", exe, ".")
	cmd.Dir, cmd.Stdout, cmd.Stderr = natsModule, os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("--nats: go build in %s: %w", natsModule, err)
	}
	return exe, nil
}

// subscribeNATS speaks the protocol of NATS over a WebSocket, waits until the server has the subscriptions, and returns what
// came in frames.
func subscribeNATS(nc net.Conn, s *rounds.Shape, number int) ([]byte, error) {
	text := `CONNECT {"verbose":false,"pedantic":false,"protocol":1,"lang":"go","version":"1"}` + "\r\n"
	for i, topic := range s.Wants(number) {
		text += fmt.Sprintf("SUB %s %d\r\n", rounds.TopicOf(topic), i)
	}
	text += "PING\r\n"
	frame := binary.BigEndian.AppendUint16([]byte{0x82, 0x80 | 126}, uint16(len(text)))
	frame = append(append(frame, 0, 0, 0, 0), text...) // masked with zeros
	if _, err := io.WriteString(nc, "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"+
		"Sec-WebSocket-Version: 13\r\n\r\n"); err != nil {
		return nil, err
	}
	var got []byte
	for b := make([]byte, 4096); ; {
		n, err := nc.Read(b)
		if err != nil {
			return nil, fmt.Errorf("%w behind %q", err, got)
		}
		got = append(got, b[:n]...)
		_, frames, answered := bytes.Cut(got, []byte("\r\n\r\n"))
		if frame != nil && answered {
			if _, err := nc.Write(frame); err != nil {
				return nil, err
			}
			frame = nil
		}
		if bytes.Contains(frames, []byte("PONG\r\n")) {
			return frames, nil
		}
	}
}

// takeNATS takes what the server sends: frames of any length, in which messages and their parts are.
func (c *clients) takeNATS(k *client, b []byte) {
	at := rounds.Now()
	for len(b) > 0 {
		if k.left == 0 {
			k.head = append(k.head, b[0])
			b = b[1:]
			if n, whole := frameLength(k.head); whole {
				k.left, k.head = n, k.head[:0]
			}
			continue
		}
		n := min(k.left, len(b))
		k.partial, b, k.left = append(k.partial, b[:n]...), b[n:], k.left-n
	}
	text := k.partial
	for {
		line, rest, whole := bytes.Cut(text, []byte("\r\n"))
		if !whole {
			break
		}
		if bytes.HasPrefix(line, []byte("MSG ")) {
			size, err := strconv.Atoi(string(line[bytes.LastIndexByte(line, ' ')+1:]))
			if err != nil || size != c.shape.Payload {
				panic(fmt.Sprintf("NATS sends %q", line))
			}
			if len(rest) < size+2 {
				break
			}
			c.count(rest[:size], at)
			rest = rest[size+2:]
		} else if strings.HasPrefix(string(line), "-ERR") {
			panic(fmt.Sprintf("NATS sends %q", line))
		}
		text = rest
	}
	k.partial = k.partial[:copy(k.partial, text)]
}

// frameLength reads the header of a frame of a server; whole: these are all its bytes.
func frameLength(head []byte) (n int, whole bool) {
	switch {
	case len(head) < 2:
		return 0, false
	case head[1] < 126:
		return int(head[1]), true
	case head[1] == 126 && len(head) == 4:
		return int(binary.BigEndian.Uint16(head[2:])), true
	case head[1] == 127 && len(head) == 10:
		return int(binary.BigEndian.Uint64(head[2:])), true
	}
	return 0, false
}
