package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
)

// buildProduct builds only what the next step needs, with the flags that make sets for all steps; the operator, which compiles against all of controller-runtime, waits until
// there is a cluster for it.
func buildProduct(ctx context.Context, d *demo) error {
	if err := os.MkdirAll("bin", 0o755); err != nil {
		return err
	}
	for _, program := range []string{"grid-node", "order-probe"} {
		out := filepath.Join("bin", program)
		args := []string{"-ldflags", "-s -w", "-o", out, "./cmd/" + program}
		if err := d.out.build(ctx, program, args...); err != nil {
			return err
		}
		info, err := os.Stat(out)
		if err != nil {
			return err
		}
		d.out.line("%s: %.1f MB, static, %s/%s", out, float64(info.Size())/1e6, runtime.GOOS, runtime.GOARCH)
	}
	return nil
}
