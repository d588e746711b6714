// Package messages builds messages of status and events: short enough for Kubernetes, with the reason why a pod does
// not run.
package messages

import "strings"

// Limits in bytes.
const (
	// MaxNote is the longest note the events API accepts.
	MaxNote = 1024
	// MaxCondition is the longest message of our conditions. The API server accepts 32,768.
	MaxCondition = 4096
	// maxQuote is how much of the message of Kubernetes, or a program, about one pod is quoted.
	maxQuote = 512
	// maxWords is how much of the last line of a crashed container is quoted, in addition.
	maxWords = 160
)

// Cut shortens s to at most limit bytes of valid UTF-8, including an ellipsis of three bytes. limit is 3 or more.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-3], "") + "..."
}
