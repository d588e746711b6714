package kube

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"time"
)

// Request is one line of an audit log, as far as it is of interest here.
type Request struct {
	Verb                     string    `json:"verb"`
	RequestURI               string    `json:"requestURI"`
	Stage                    string    `json:"stage"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
	User                     struct {
		Username string `json:"username"`
	} `json:"user"`
}

// RequestsBetween returns the finished requests that the API server received from a user whose name begins with userPrefix, from begin
// (included) to end (excluded). An open watch is finished when it closes; a watch that stays open is no request in the span.
func RequestsBetween(path, userPrefix string, begin, end time.Time) ([]Request, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return scan(f, userPrefix, begin, end)
}

func scan(r io.Reader, userPrefix string, begin, end time.Time) (found []Request, err error) {
	lines := bufio.NewReaderSize(r, 1<<20)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return found, nil // the last line may be half written
		}
		if err != nil {
			return nil, err
		}
		var q Request
		if err := json.Unmarshal(line, &q); err != nil {
			return nil, fmt.Errorf("audit log line %d: %w", n, err)
		}
		if q.Stage == "ResponseComplete" && strings.HasPrefix(q.User.Username, userPrefix) &&
			!q.RequestReceivedTimestamp.Before(begin) && q.RequestReceivedTimestamp.Before(end) {
			found = append(found, q)
		}
	}
}

// RequestSummary counts requests by verb and path, most frequent first.
func RequestSummary(list []Request) string {
	counts := map[string]int{}
	for _, q := range list {
		path, _, _ := strings.Cut(q.RequestURI, "?")
		counts[q.Verb+" "+path]++
	}
	keys := make([]string, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool {
		if counts[keys[i]] != counts[keys[j]] {
			return counts[keys[i]] > counts[keys[j]]
		}
		return keys[i] < keys[j]
	})
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%6d %s\n", counts[k], k)
	}
	return b.String()
}
