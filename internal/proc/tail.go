package proc

import "sync"

// Tail is an io.Writer that remembers its last TailLimit bytes. The zero value is
// ready, and safe for concurrent use.
type Tail struct {
	mu sync.Mutex
	b  []byte
}

// TailLimit in bytes.
const TailLimit = 8 << 10

func (w *Tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b = append(w.b, p...)
	if over := len(w.b) - TailLimit; over > 0 {
		w.b = append(w.b[:0], w.b[over:]...)
	}
	return len(p), nil
}

// String is the remembered output.
func (w *Tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return string(w.b)
}
