package wire

// MinVersion is the oldest protocol version this package speaks, Version the newest. They
// are equal until the frames change: then a release speaks its own and the previous one,
// so that neighbouring releases always share a version.
const (
	MinVersion = 4
	Version    = 4
)
