package metrics

var (
	loopStalls  = desc("loop_stalls_total", "Times a loop was held up for more than half of --lease; each is logged with its likely cause.", "loop")
	loopStalled = desc("loop_stalled_seconds_total", "Time between two ticks of a loop that were so far apart that it counts as a stall.", "loop")

	threadCPU      = desc("loop_cpu_seconds_total", "CPU time of a loop's thread, by mode: user, system.", "loop", "mode")
	threadWaited   = desc("loop_run_queue_seconds_total", "Time a loop's thread was ready to run and had no core.", "loop")
	threadFaults   = desc("loop_page_faults_total", "Page faults of a loop's thread, by kind: minor, major.", "loop", "kind")
	threadSwitches = desc("loop_context_switches_total", "Context switches of a loop's thread, by kind: voluntary (it slept), involuntary (another took the core).", "loop", "kind")
)

// threads are as of the last tick. Without a thread of its own, or without the kernel's
// accounting, only the stalls are exported.
func (e emitter) threads(s *Snapshot) {
	for i, name := range ThreadNames {
		t := &s.Threads[i]
		e.counter(loopStalls, t.Stalls, name)
		e.seconds(loopStalled, t.Stalled, name)
		u := &t.Usage
		if !u.Known {
			continue
		}
		e.seconds(threadCPU, u.User, name, "user")
		e.seconds(threadCPU, u.System, name, "system")
		e.seconds(threadWaited, u.Waited, name)
		e.counter(threadFaults, u.MinorFaults, name, "minor")
		e.counter(threadFaults, u.MajorFaults, name, "major")
		e.counter(threadSwitches, u.Voluntary, name, "voluntary")
		e.counter(threadSwitches, u.Involuntary, name, "involuntary")
	}
}
