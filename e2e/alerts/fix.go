package alerts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/probe/clock"
)

// The one session of the gateway of a case.
const fixSessions = `{"sessions": [{"version": "FIX.4.4", "senderCompID": "BANK", "targetCompID": "GRID", "username": "bank", "passwordFile": "password"}]}`

// gateway runs order-gateway before the grid, and returns the address of its FIX port.
func gateway(ctx context.Context, w *world) (address string, err error) {
	sessions := filepath.Join(w.dir, "sessions.json")
	if err := errors.Join(os.WriteFile(sessions, []byte(fixSessions), 0o600), os.WriteFile(filepath.Join(w.dir, "password"), []byte("right\n"), 0o600)); err != nil {
		return "", err
	}
	if address, err = w.ports.Take("127.0.0.1", 0); err != nil {
		return "", err
	}
	return address, w.beside(ctx, map[string]string{"gateway": "street", "pod": "street-gateway-0"}, "order-gateway", "--endpoint", strings.Join(w.grid.Endpoints, ","), "--grid", "dev",
		"--listen", address, "--fix-insecure-plain", "--sessions", sessions)
}

// counterparty is one connection of a FIX session, with its numbers reset.
type counterparty struct {
	net.Conn
	seq int
}

func logon(ctx context.Context, address, password string) (*counterparty, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &counterparty{Conn: conn}
	return c, c.send("A", "98=0", "108=30", "141=Y", "553=bank", "554="+password)
}

func (c *counterparty) send(kind string, fields ...string) error {
	c.seq++
	const soh = "\x01"
	body := strings.Join(append([]string{"35=" + kind, fmt.Sprintf("34=%d", c.seq), "49=BANK", "52=" + time.Now().UTC().Format("20060102-15:04:05.000"), "56=GRID"}, fields...), soh) + soh
	text := fmt.Sprintf("8=FIX.4.4%s9=%d%s%s", soh, len(body), soh, body)
	sum := 0
	for i := range len(text) {
		sum += int(text[i])
	}
	_, err := fmt.Fprintf(c, "%s10=%03d%s", text, sum%256, soh)
	return err
}

func (c *counterparty) order(id string) error {
	return c.send("D", "11="+id, "55=IBM", "54=1", "60="+time.Now().UTC().Format("20060102-15:04:05"), "38=100", "40=2", "44=9.5")
}

// logOnWrongly logs on with a wrong password, again and again.
func logOnWrongly(ctx context.Context, w *world) error {
	address, err := gateway(ctx, w)
	if err != nil {
		return err
	}
	w.background(func(ctx context.Context) error {
		for ; ctx.Err() == nil; _ = clock.Wait(ctx, 500*time.Millisecond) {
			c, err := logon(ctx, address, "wrong")
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			_ = c.SetDeadline(time.Now().Add(10 * time.Second)) // a TCP connection has deadlines
			if n, err := c.Read(make([]byte, 1)); err == nil {
				return fmt.Errorf("a logon with a wrong password was answered with %d bytes, want the end of the connection", n)
			}
			_ = c.Close()
		}
		return nil
	})
	return nil
}

// orderIntoSilence has both nodes hang while a FIX session sends an order a second, logging on again when it is logged out.
func orderIntoSilence(ctx context.Context, w *world) error {
	address, err := gateway(ctx, w)
	if err != nil {
		return err
	}
	_ = clock.Wait(ctx, 3*time.Second) // scrapes of a gateway that reaches its grid
	if err := errors.Join(w.grid.freeze(0), w.grid.freeze(1)); err != nil {
		return err
	}
	w.background(func(ctx context.Context) error {
		for n := 0; ctx.Err() == nil; {
			c, err := logon(ctx, address, "right")
			for ; err == nil && ctx.Err() == nil; n++ {
				err = c.order(fmt.Sprintf("silence-%d", n)) // until it is logged out
				_ = clock.Wait(ctx, time.Second)
			}
			if c != nil {
				_ = c.Close()
			}
			_ = clock.Wait(ctx, 100*time.Millisecond)
		}
		return nil
	})
	return nil
}
