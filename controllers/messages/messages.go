// Package messages makes what people read in status and in events: short enough for Kubernetes, with the reason why a pod
// does not run.
package messages

import "strings"

// Limits in bytes.
const (
	// MaxNote is the longest note the events API accepts.
	MaxNote = 1024
	// MaxCondition is the longest message of a condition of ours. The API server takes 32,768, which nobody reads.
	MaxCondition = 4096
	// maxQuote is how much of what Kubernetes, or a program, says of one pod is quoted.
	maxQuote = 512
	// maxWords is how much of the last line of a crashed container is quoted, beside other things.
	maxWords = 160
)

// Cut shortens s to at most limit bytes of valid UTF-8, three of which say that something is missing. limit is 3 or more.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-3], "") + "..."
}
