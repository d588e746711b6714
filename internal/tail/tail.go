// Package tail keeps the end of a process's output: enough to show why it ended.
package tail

import "sync"

// Writer is an io.Writer that remembers its last Limit bytes. The zero value is
// ready, and safe for concurrent use.
type Writer struct {
	mu sync.Mutex
	b  []byte
}

// Limit in bytes.
const Limit = 8 << 10

func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = append(w.b, p...)
	if over := len(w.b) - Limit; over > 0 {
		w.b = append(w.b[:0], w.b[over:]...)
	}
	return len(p), nil
}

// String is the remembered output.
func (w *Writer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.b)
}
