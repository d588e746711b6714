package wire

// MinVersion is the oldest protocol version this package still speaks, Version
// the newest (version_now.go). Two neighbouring releases always share a version.
const MinVersion = 1

// VersionSinks is the first version with ListSinks and ReadSink.
const VersionSinks = 2

// since is the version from which on a client may send a request.
func since(t Type) uint16 {
	if t == TypeListSinks || t == TypeReadSink {
		return VersionSinks
	}
	return MinVersion
}

// Speaks says whether a client's request of type t belongs to the version that
// a connection negotiated.
func Speaks(version uint16, t Type) bool { return version >= since(t) }
