package wire

// MinVersion is the oldest protocol version this package still speaks, Version
// the newest (version_now.go). Two neighbouring releases always share a version.
const MinVersion = 2

// VersionProof is the first version in which nodes prove the grid's peer key.
const VersionProof = 3

// versionAckHash is the first version that knows OpenSession.WantHash.
const versionAckHash = 3
