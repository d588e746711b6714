package query

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// Error is why a question is refused.
type Error struct {
	Where   string // "filter", "select", "group by", "order by", "limit", "cursor", "question"
	Field   string // its name, "" if none is at fault
	Value   string
	Allowed string
}

func (e *Error) Error() string {
	if e.Field != "" {
		return fmt.Sprintf("query: %s: %s is %s, allowed: %s", e.Where, e.Field, e.Value, e.Allowed)
	}
	return fmt.Sprintf("query: %s: %s, allowed: %s", e.Where, e.Value, e.Allowed)
}

// BoundError is returned when a question needs more than its limits while it runs. There is
// no partial answer.
type BoundError struct {
	What  string
	Limit int64
	Do    string
}

func (e *BoundError) Error() string {
	return fmt.Sprintf("query: more than %d %s, allowed: %d; %s", e.Limit, e.What, e.Limit, e.Do)
}

// OverflowError is returned when a sum has more digits than a decimal can have.
type OverflowError struct{ Column string }

func (e *OverflowError) Error() string {
	return fmt.Sprintf("query: %s has more than 37 digits, allowed: sums of up to 37 digits, %d of them behind the point; sum fewer rows", e.Column, view.MaxScale)
}
