package nodestatus

import (
	"context"
	"fmt"
	"net/http"
)

// BooksPath of the page on a node's HTTP port.
const BooksPath = "/books"

// maxBooks bounds the answer, in bytes: some 300 for a book.
const maxBooks = 32 << 20

// Books are those of the partitions that a node is the primary of, by partition and number.
type Books struct {
	Pod    string `json:"pod"`
	BootID string `json:"bootID"`
	Books  []Book `json:"books"`
	// Calendar is that of the node, absent without: the phase that books are to be in, and the next one.
	Calendar *Calendar `json:"calendar,omitempty"`
}

// Book is the state of a book. Times are Unix ns.
type Book struct {
	Symbol      string `json:"symbol"`
	Partition   string `json:"partition"`             // "p1"
	State       string `json:"state"`                 // closed, call, uncrossing, open, halted
	SinceUnixNs int64  `json:"sinceUnixNs,omitempty"` // of the entry with which it began; 0: as the instrument was defined
	UntilUnixNs int64  `json:"untilUnixNs,omitempty"` // a halt ends then by itself
	// EnteredUnixNs is when the last phase of the calendar was due that the book has entered; 0: none.
	EnteredUnixNs int64 `json:"enteredUnixNs,omitempty"`
	Behind        bool  `json:"behind,omitempty"` // it has not entered the present phase
}

// GetBooks requests the page from the node at address, "host:port" of its HTTP port.
func GetBooks(ctx context.Context, c *http.Client, address string) (*Books, error) {
	b := &Books{}
	if err := get(ctx, c, address, BooksPath, maxBooks, b); err != nil {
		return nil, err
	}
	if b.Pod == "" || b.BootID == "" {
		return nil, fmt.Errorf("GET http://%s%s: the answer names pod %.80q and boot id %.20q; is this a grid node of this version?", address, BooksPath, b.Pod, b.BootID)
	}
	return b, nil
}
