package wire

// MinVersion is the oldest protocol version this package still speaks, Version
// the newest (version_now.go). Two neighbouring releases always share a version.
const MinVersion = 1

// VersionSinks is the first version with ListSinks and ReadSink.
const VersionSinks = 2

// VersionTokens is the first version with Authenticate.
const VersionTokens = 2

// VersionLayout is the first version whose tables have a Layout.
const VersionLayout = 2

// since is the version from which on a client may send a request.
func since(t Type) uint16 {
	switch t {
	case TypeListSinks, TypeReadSink:
		return VersionSinks
	case TypeAuthenticate:
		return VersionTokens
	}
	return MinVersion
}

// Speaks says whether a client's request of type t belongs to the version that
// a connection negotiated.
func Speaks(version uint16, t Type) bool { return version >= since(t) }
