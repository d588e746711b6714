package system

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/internal/proc"
	"github.com/ordergrid/ordergrid/internal/wan"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/devgrid"
)

// standby is an empty grid at the end of a road, and the link to it.
type standby struct {
	*devgrid.Grid
	held proc.HeldPorts
	link *exec.Cmd
	said bytes.Buffer
	stop context.CancelFunc
	at   *client.Client
}

// far starts a standby behind a road of so many ms one way, and the link from the source.
func (o *Options) far(ctx context.Context, source *devgrid.Grid, rows int, oneWay float64, args ...string) (_ *standby, err error) {
	program, err := devgrid.Find(o.Link, "grid-link")
	if err != nil {
		return nil, err
	}
	s := &standby{}
	ctx, s.stop = context.WithCancel(ctx)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.end())
		}
	}()
	outside, err := s.held.Take("127.0.0.1", 0)
	if err != nil {
		return nil, err
	}
	if s.Grid, err = o.site(ctx, rows, "--external-sink", "link", "--standby", "--", "--external-listen", outside); err != nil {
		return nil, err
	}
	road, err := wan.New(ctx, outside, time.Duration(oneWay*float64(time.Millisecond)), 0)
	if err != nil {
		return nil, err
	}
	// Clients that come by the road are led on by it.
	if err := put(ctx, s.Arbiter+"/v1/partitions/dev-p0/spec", fmt.Sprintf(`{"external": [{"pod": "dev-s0-0", "address": %q}]}`, road.Addr)); err != nil {
		return nil, err
	}
	if s.at, err = client.Dial(ctx, client.Config{Endpoints: s.Endpoints, RequestTimeout: time.Minute}); err != nil {
		return nil, err
	}
	s.link = exec.CommandContext(ctx, program, append([]string{"run", "--source-grid", "dev", "--source-endpoint", strings.Join(source.Endpoints, ","), "--target-grid", "dev", "--target-endpoint", road.Addr, "--http", ""}, args...)...)
	s.link.Stdout, s.link.Stderr = &s.said, &s.said
	s.link.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return s, nil
}

// end ends link, road and standby.
func (s *standby) end() (err error) {
	if s.at != nil {
		_ = s.at.Close() // it never fails
	}
	s.stop()
	if s.link != nil && s.link.Process != nil {
		_ = s.link.Wait() // it was killed
	}
	if s.Grid != nil {
		err = s.Stop()
	}
	s.held.Release()
	return err
}

func put(ctx context.Context, url, body string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it is not read
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("PUT %s: %s", url, resp.Status)
	}
	return nil
}

// reach waits until the standby has committed an entry.
func (s *standby) reach(ctx context.Context, seq uint64, limit time.Duration) error {
	for deadline := time.Now().Add(limit); ; {
		at, err := s.at.Site(ctx, 0)
		if err == nil && at.Committed.Seq >= seq {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s the standby has entry %d of %d (%w): %.400s", limit, at.Committed.Seq, seq, err, s.said.String())
		}
		if err := clock.Wait(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// hashes are those of the committed entries.
func hashes(ctx context.Context, c *client.Client) (all []uint64, orders int, err error) {
	_, err = c.ReadLog(ctx, 0, "", 1, func(e client.LogEntry) error {
		all = append(all, order.Hash(e.Bytes))
		if e.Kind.IsOrder() {
			orders++
		}
		return nil
	})
	return all, orders, err
}

// missing compares the logs of both sites: how many orders the source has, how many the standby has of these, and how many
// entries it lacks or has otherwise. It may take so long to get what the source has by then: entries that are no orders
// follow the last one.
func missing(ctx context.Context, source *devgrid.Grid, s *standby, patience time.Duration) (sent, received, lost int, err error) {
	c, err := client.Dial(ctx, client.Config{Endpoints: source.Endpoints, RequestTimeout: time.Minute})
	if err != nil {
		return 0, 0, 0, err
	}
	defer c.Close() //nolint:errcheck // it never fails
	a, sent, err := hashes(ctx, c)
	if err != nil {
		return 0, 0, 0, err
	}
	if patience > 0 {
		_ = s.reach(ctx, uint64(len(a)), patience) // the comparison tells what it has not reached
	}
	b, received, err := hashes(ctx, s.at)
	if err != nil {
		return 0, 0, 0, err
	}
	for i, h := range a {
		if i >= len(b) || b[i] != h {
			lost++
		}
	}
	return sent, received, lost, nil
}
