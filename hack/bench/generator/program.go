package generator

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/internal/proc"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// nothing is the driver of a program that answers at once, as Null is here.
const nothing = "dev.ordergrid.peers.Nothing"

// maxLine bounds a line of a program: three histograms.
const maxLine = 4 << 20

// program has another program put the load on the system: one whose clients are of
// another language. That says "measuring" and "measured" at the ends of the measured
// time and then what came of it; this process takes the CPU time of all, and sleeps.
func (r *run) program() error {
	args, err := programArgs(r.Spec, r.id)
	if err != nil {
		return err
	}
	cmd := exec.Command(r.Program[0], append(r.Program[1:len(r.Program):len(r.Program)], args...)...)
	said := &proc.Tail{}
	cmd.Stderr, cmd.WaitDelay = said, time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := proc.StartCommand(cmd); err != nil {
		return fmt.Errorf("start %s: %w", r.Program[0], err)
	}
	// Its CPU time is the generator's, which is the last of what is sampled.
	spec := *r.Spec
	spec.PIDs = append(spec.PIDs[:len(spec.PIDs):len(spec.PIDs)], cmd.Process.Pid)
	var a, b sampled
	res, failed := follow(out, func(word string) (err error) {
		switch word {
		case "measuring":
			a, err = take(spec.PIDs)
		case "measured":
			b, err = take(spec.PIDs)
		}
		return err
	})
	if failed != nil {
		_ = cmd.Process.Kill() // it may have ended already
	}
	if err := errors.Join(failed, cmd.Wait()); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
	}
	r.r = res
	r.use(a, b)
	last := len(r.PIDs)
	r.r.OwnCPU, r.r.SystemCPU = r.r.OwnCPU+r.r.EachCPU[last], r.r.SystemCPU-r.r.EachCPU[last]
	r.r.EachCPU = r.r.EachCPU[:last]
	return nil
}

// follow reads what a program says: both words, each told to at, then its result.
func follow(out io.Reader, at func(word string) error) (res Result, err error) {
	words := []string{"measuring", "measured"}
	sc := bufio.NewScanner(out)
	sc.Buffer(nil, maxLine)
	for sc.Scan() {
		line := sc.Text()
		switch {
		case len(words) > 0 && line == words[0]:
			words = words[1:]
			if err := at(line); err != nil {
				return res, err
			}
		case len(words) > 0:
			return res, fmt.Errorf("the generator said %.80q, wanted: %s", line, words[0])
		default:
			if err := json.Unmarshal([]byte(line), &res); err != nil {
				return res, fmt.Errorf("the generator's result %.80q: %w", line, err)
			}
			return res, nil
		}
	}
	return res, errors.Join(sc.Err(), errors.New("the generator ended without a result"))
}

// programArgs are the arguments of class Generator.
func programArgs(s *Spec, id uint64) ([]string, error) {
	order, err := template(s.Size, fixorder.ID{Run: id}, 0)
	if err != nil {
		return nil, err
	}
	driver, servers := string(s.Driver), "none=0"
	if s.Driver == Null {
		driver = nothing
	} else {
		servers = s.Addresses[0]
	}
	ms := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	return []string{"--peer", driver, "--servers", servers, "--order", base64.StdEncoding.EncodeToString(order), "--key-at", strconv.Itoa(keyOffset(order)),
		"--rate", strconv.Itoa(s.Shape.Rate), "--threads", strconv.Itoa(s.Shape.Threads), "--depth", strconv.Itoa(s.Shape.Depth),
		"--jvm-warmup-ms", ms(s.ProgramWarmup), "--warmup-ms", ms(s.Warmup), "--duration-ms", ms(s.Duration)}, nil
}
