// Package proc has what programs need that start others: processes that do not outlive their parent (not after an
// error, not after Ctrl-C, not after it was killed), ports reserved for processes that will listen on them, and the end
// of what a process wrote, enough to show why it ended. A port that was only found to be free may be taken by any
// process that asks for an ephemeral port, to listen or to connect.
package proc
