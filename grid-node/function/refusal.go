package function

import "fmt"

// Refusal is why a module is not loaded.
type Refusal struct {
	Offset int    // in the module, -1 if it is not about a place
	Text   string // what, its value, and what is allowed
}

func (r *Refusal) Error() string {
	if r.Offset < 0 {
		return "module refused: " + r.Text
	}
	return fmt.Sprintf("module refused at offset %#x: %s", r.Offset, r.Text)
}

func refuse(offset int, format string, args ...any) error {
	return &Refusal{Offset: offset, Text: fmt.Sprintf(format, args...)}
}
