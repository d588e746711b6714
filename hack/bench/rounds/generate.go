package rounds

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/hack/bench/system"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// generate runs the generator in a process of its own: a fresh heap and
// scheduler each time, and exclusive CPU time.
func (r *Runner) generate(ctx context.Context, at system.Place, spec *generator.Spec) (res generator.Result, err error) {
	in, err := json.Marshal(spec)
	if err != nil {
		return res, err
	}
	cmd := at.Command(system.Client, r.Self, "generate")
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &said
	if err := proc.StartCommand(cmd); err != nil {
		return res, fmt.Errorf("start the generator: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return res, ctx.Err()
		}
		return res, fmt.Errorf("generator: %w: %s", err, strings.TrimSpace(said.String()))
	}
	if err := json.Unmarshal(out.Bytes(), &res); err != nil {
		return res, fmt.Errorf("the generator's answer: %w", err)
	}
	return res, nil
}

// affordable is the memory limit in MiB that each of n server processes can have
// on this machine, with some left for the generator.
func affordable(n int) int {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 1 << 10
	}
	total := info.Totalram * uint64(info.Unit) >> 20
	return max(256, int(total*9/10)/n)
}
