//go:build wire_previous

package wire

// Version is that of the release before: a build with the tag wire_previous says
// and answers what that one does, so that a test can mix two real nodes of
// neighbouring versions. No release is built so.
const Version = 2
