package messages

import (
	"fmt"
	"strings"
)

// Coarse rounds down to 1, 2 or 5 times a power of ten: a figure in status that changes all the time would be written
// all the time.
func Coarse(n int64) int64 {
	for power := int64(1_000_000_000_000_000_000); power > 0; power /= 10 {
		for _, digit := range []int64{5, 2, 1} {
			if n/power >= digit {
				return digit * power
			}
		}
	}
	return 0
}

// Some lists the first few, so that a message stays readable.
func Some(names []string) string {
	const few = 4
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
