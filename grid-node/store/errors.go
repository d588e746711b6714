package store

import "fmt"

// ErrCapacity means that the memory limit is reached. Nothing was written.
type ErrCapacity struct {
	Used  int64 // bytes
	Limit int64 // bytes
}

func (e *ErrCapacity) Error() string {
	return fmt.Sprintf("order store is full: %d of %d bytes used", e.Used, e.Limit)
}

// ErrGap means that an entry is not the next one.
type ErrGap struct {
	Expected, Got uint64 // seq
}

func (e *ErrGap) Error() string {
	return fmt.Sprintf("entry has seq %d, allowed: %d", e.Got, e.Expected)
}

// ErrChain means that an entry does not continue this log: its history is another.
type ErrChain struct {
	Seq       uint64
	Want, Got uint64 // hash of the entry before
}

func (e *ErrChain) Error() string {
	return fmt.Sprintf("entry %d: prevHash is %016x, allowed: %016x, the hash of entry %d here", e.Seq, e.Got, e.Want, e.Seq-1)
}
