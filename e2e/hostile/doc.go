// Package hostile lets strangers loose on a grid: real processes that hold
// connections open and say nothing, that say Hello byte by byte, that begin frames and
// TLS handshakes and do not end them, and that come back as soon as they are thrown
// out. So it does with clients that are accepted and then ask for much and read nothing,
// open sessions without end or do not finish a frame, with peers that claim to be nodes and
// forges its frames, and with certificates that carry the name of the operator's tools. A client with a right to be there
// submits. `make hostile` runs it and reports what that did to the client's latency, beside what the same strangers do to it
// at another grid on the same machine.
package hostile
