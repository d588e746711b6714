package nodestatus

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// ClockPath of the page on a node's HTTP port.
const ClockPath = "/clock"

// Clock is the time as a process sees it. A fault that shifts a process's clock changes
// what it reads through the vDSO, as programs do; a system call is not shifted. The two
// readings in one answer therefore reveal such a fault without another clock; a wrong
// clock of the machine shows only against that of the client (Reading.Offset).
type Clock struct {
	Pod    string `json:"pod"`
	BootID string `json:"bootID"`
	UnixNs int64  `json:"unixNs"` // wall clock as the process sees it
	// MonotonicNs is the monotonic clock as the process sees it, counted from the start of the process.
	MonotonicNs int64 `json:"monotonicNs"`
	// KernelUnixNs and KernelMonotonicNs are the same by system call, read right after; 0
	// if unavailable.
	KernelUnixNs      int64 `json:"kernelUnixNs,omitempty"`
	KernelMonotonicNs int64 `json:"kernelMonotonicNs,omitempty"`
}

// Shift is the difference of the process's wall clock to its kernel's; only a fault makes
// it exceed some microseconds. False: the kernel's is unavailable.
func (c *Clock) Shift() (time.Duration, bool) {
	return time.Duration(c.UnixNs - c.KernelUnixNs), c.KernelUnixNs != 0
}

// MonotonicShift is the drift of the process's monotonic clock from its kernel's since the
// process began.
func (c *Clock) MonotonicShift() (time.Duration, bool) {
	return time.Duration(c.MonotonicNs - c.KernelMonotonicNs), c.KernelMonotonicNs != 0
}

// Reading is a Clock and when it was read, by the client's clock.
type Reading struct {
	Clock
	Asked time.Time     // when the request was sent
	Took  time.Duration // until the answer was there
}

// Offset is the difference of the node's wall clock to the client's, within plus or minus
// uncertainty, if neither clock was set in between.
func (r *Reading) Offset() (offset, uncertainty time.Duration) {
	half := r.Took / 2
	return time.Duration(r.UnixNs - r.Asked.Add(half).UnixNano()), r.Took - half
}

// GetClock requests the page from the node at address, "host:port" of its HTTP port.
func GetClock(ctx context.Context, c *http.Client, address string) (*Reading, error) {
	r := &Reading{Asked: time.Now()}
	err := get(ctx, c, address, ClockPath, maxBody, &r.Clock)
	r.Took = time.Since(r.Asked)
	if err != nil {
		return nil, err
	}
	if r.Pod == "" || r.UnixNs == 0 {
		return nil, fmt.Errorf("GET http://%s%s: the answer names no pod or no time; is this a grid node of this version?", address, ClockPath)
	}
	return r, nil
}

// ServeClock answers ClockPath for the process with that name and boot id. The clocks are
// read last.
func ServeClock(pod, bootID string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		c := Clock{Pod: pod, BootID: bootID}
		c.read()
		_ = json.NewEncoder(w).Encode(c) // the client is gone: the error is ignored
	}
}

// began is the start of this process by Go's clock; beganKernel the monotonic clock by
// system call at that time.
var began, beganKernel = func() (time.Time, int64) {
	_, mono := kernelClocks()
	return time.Now(), mono
}()

func (c *Clock) read() {
	now := time.Now()
	c.KernelUnixNs, c.KernelMonotonicNs = kernelClocks()
	c.UnixNs, c.MonotonicNs = now.UnixNano(), int64(now.Sub(began))
	if c.KernelMonotonicNs != 0 {
		c.KernelMonotonicNs -= beganKernel
	}
}
