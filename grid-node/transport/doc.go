// Package transport moves bytes between sockets and one single-threaded Handler. It is the
// only place with sockets on the data path, and it does not know frames: the Handler
// returns how many bytes it consumed.
//
// One Loop runs all connections of a process. Everything the Handler does runs
// on the loop, so the state behind it needs no lock and an order never hops
// between threads. Per wake-up the loop reads every ready connection once,
// hands the bytes over, calls OnWakeEnd, and only then writes: all that a
// wake-up produced for one connection goes out in one system call, and nothing
// waits for a timer. Only KindEpoll writes earlier, when answers to a connection's own
// frames reach 8 KiB: its peer continues while others are served.
//
// Two implementations stand behind the same interface:
//
//   - KindEpoll (Linux, the default there): an epoll loop of its own on a locked
//     OS thread. recvfrom, sendto and epoll_pwait are raw system calls, so the
//     goroutine keeps its P while it sleeps in epoll_pwait; giving the P away and
//     winning it back costs more than the rest of the path. GOMAXPROCS must be
//     at least the number of loops + 2 (see TuneScheduler), else the collector
//     and every other goroutine would starve behind the sleeping loop.
//   - KindNet (everywhere): the net package, a reader and a writer goroutine per
//     connection around the same single handler goroutine, which is not locked to a
//     thread and writes little output itself. About 1.5 times slower at p50; for other
//     operating systems.
//
// With Config.TLS connections are accepted and dialled on goroutines of the net package,
// where crypto/tls makes their handshake. Then the loop gets the socket, and seals and
// opens records itself (package tlsrecord); it does not know a connection before the end
// of its handshake.
//
// # Stop-the-world
//
// A P held across epoll_pwait cannot be taken by the scheduler, so a
// stop-the-world (garbage collection phases, pprof, GOMAXPROCS changes) must
// interrupt the system call: the runtime sends its preemption signal (SIGURG) to
// the thread, epoll_pwait returns EINTR (it is never restarted), and the loop
// passes a function prologue, which is a safepoint. A signal that lands between
// the last safepoint and the system call is not lost either: the runtime repeats
// it every 100 µs until the world has stopped. The price is therefore at most
// about 100 µs of extra pause per stop, paid by the requester, and two
// context switches of this thread; GODEBUG=asyncpreemptoff=1 would turn it into
// one Tick and is refused by TuneScheduler. For the same reason the runtime's monitor
// (sysmon) preempts the loop every 10 ms when it sees no scheduling on its P: one
// EINTR and one requeue, about 30 µs of work, 0.3 % of one core.
//
// # Limits
//
// Every buffer is bounded. Output above Config.SoftOut stops the reading of that
// connection until it drained (back-pressure, nothing is dropped). Output above
// Config.HardOut, input that stays incomplete above Config.MaxInput, and output
// that makes no progress for Config.WriteStall close the connection with a typed
// error. Connections above Config.MaxConns are closed at accept and counted.
package transport
