package generator

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"time"
)

// profile is the recording of this process; nil records nothing.
type profile struct {
	dir string
	cpu *os.File
}

// blockRate samples one blocking event per so much time blocked.
const blockRate = 10 * time.Microsecond

func startProfile(dir string) (*profile, error) {
	if dir == "" {
		return nil, nil
	}
	f, err := os.Create(filepath.Join(dir, "client.cpu.pprof"))
	if err != nil {
		return nil, err
	}
	runtime.SetBlockProfileRate(int(blockRate))
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &profile{dir: dir, cpu: f}, nil
}

func (p *profile) stop() error {
	if p == nil {
		return nil
	}
	pprof.StopCPUProfile()
	errs := []error{p.cpu.Close()}
	for _, name := range []string{"allocs", "block"} {
		f, err := os.Create(filepath.Join(p.dir, fmt.Sprintf("client.%s.pprof", name)))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, pprof.Lookup(name).WriteTo(f, 0), f.Close())
	}
	return errors.Join(errs...)
}
