package grid

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// Function is one that the nodes of a grid call.
type Function struct {
	Name   string
	Post   bool // every copy calls it; otherwise the primary, before an order is an entry
	Module []byte
	Config string
	Fuel   int
}

// functionArgs writes the module and the configuration into the grid's directory, and returns the flags that name them.
func (g *Grid) functionArgs() ([]string, error) {
	f := g.Function
	if f == nil {
		return nil, nil
	}
	module, config := filepath.Join(g.Dir, f.Name+".wasm"), filepath.Join(g.Dir, f.Name+".conf")
	if err := os.WriteFile(module, f.Module, 0o600); err != nil {
		return nil, err
	}
	text, flag := fmt.Sprintf("%s=%s:sha256=%x,fuel=%d", f.Name, module, sha256.Sum256(f.Module), f.Fuel), "--function-pre"
	if f.Config != "" {
		if err := os.WriteFile(config, []byte(f.Config), 0o600); err != nil {
			return nil, err
		}
		text += fmt.Sprintf(",config=%s,configSHA256=%x", config, sha256.Sum256([]byte(f.Config)))
	}
	if f.Post {
		flag = "--function-post"
	}
	return []string{flag, text}, nil
}

// Bare checks that a program was built without what calls functions: it refuses one, with the reason. What is
// left out of the command line keeps any other program from serving.
func Bare(ctx context.Context, dir, program string) error {
	g := Grid{Dir: dir, Function: &Function{Name: "fat-finger", Module: examples.FatFinger, Config: "quantity=1\n", Fuel: 100_000}}
	args, err := g.functionArgs()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, append([]string{"serve", "--arbiter", "http://127.0.0.1:1", "--advertise", ""}, args...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "built with the tag nofunctions") {
		return fmt.Errorf("%s calls functions, or does not say that it cannot (%v): without that it is no measure of a grid that calls none:\n%s", program, err, out)
	}
	return nil
}

// watchFunction waits until the logs of all partitions call a function of kind Post, and checks in the end that the
// function was called, and no call failed: otherwise what was measured is not its cost.
func (g *Grid) watchFunction(ctx context.Context, at system.Place, urls []string, partitions int, group *proc.Group) error {
	client := &http.Client{Transport: &http.Transport{DialContext: at.Dial}, Timeout: time.Second}
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	for g.Function.Post {
		n := 0
		for _, url := range urls { // every copy of every partition
			if s, err := statusOf(ctx, client, url); err == nil {
				for _, f := range s.Posts {
					n += f.Partitions
				}
			}
		}
		if n == partitions*len(urls) {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("function %s is in force in %d of %d copies of partitions: %w", g.Function.Name, n, partitions*len(urls), ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
	group.Add(func() error {
		defer client.CloseIdleConnections()
		var calls, failed uint64
		for _, url := range urls {
			s, err := statusOf(context.Background(), client, url)
			if err != nil {
				return err
			}
			c, f := callsOf(s, g.Function)
			calls, failed = calls+c, failed+f
		}
		if calls == 0 || failed > 0 {
			return fmt.Errorf("function %s: %d calls had a result and %d failed: this was no measurement of it", g.Function.Name, calls, failed)
		}
		return nil
	})
	return nil
}

// callsOf returns the calls of a function that had a result, and those that failed.
func callsOf(s *nodestatus.Node, f *Function) (calls, failed uint64) {
	if f.Post {
		for _, p := range s.Posts {
			calls, failed = calls+p.Records+p.None, failed+p.Failed
		}
		return calls, failed
	}
	if s.Functions == nil {
		return 0, 0
	}
	at := slices.IndexFunc(s.Functions.Pre, func(p nodestatus.Function) bool { return p.Name == f.Name })
	if at < 0 {
		return 0, 0
	}
	p := &s.Functions.Pre[at]
	return p.Accepted + p.Changed, p.Failed + p.Refused // a refused order is not the one that was to be measured
}

func statusOf(ctx context.Context, client *http.Client, url string) (*nodestatus.Node, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+nodestatus.Path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read to its end
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	s := &nodestatus.Node{}
	return s, json.NewDecoder(resp.Body).Decode(s)
}
