package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/gateway/sink"
	"github.com/ordergrid/ordergrid/gateway/sink/postgres"
)

// Exit codes of a writer process, beside 0: it has written everything.
const (
	exitPermanent = 3
	exitFenced    = 4
)

// TestMain lets the test program be a writer process, which tests kill and stop.
func TestMain(m *testing.M) {
	if url := os.Getenv("ORDERGRID_TEST_WRITER"); url != "" {
		os.Exit(write(url, os.Getenv("ORDERGRID_TEST_THROUGH"), os.Getenv("ORDERGRID_TEST_BATCH")))
	}
	os.Exit(m.Run())
}

// write does what the Runner does: open, go on behind the position, open again after an error.
func write(url, through, batch string) int {
	end, endErr := strconv.ParseUint(through, 10, 64)
	size, sizeErr := strconv.Atoi(batch)
	target, err := postgres.New(postgres.Options{Grid: grid, Connection: postgres.Connection{URLFile: url}})
	if err := errors.Join(endErr, sizeErr, err); err != nil {
		panic(err)
	}
	for {
		err := writeThrough(target, end, size)
		var permanent *sink.PermanentError
		switch {
		case err == nil:
			return 0
		case errors.Is(err, sink.ErrFenced):
			return exitFenced
		case errors.As(err, &permanent):
			fmt.Fprintln(os.Stderr, err)
			return exitPermanent
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func writeThrough(target *postgres.Target, end uint64, size int) error {
	ctx := context.Background()
	w, err := target.Open(ctx, 0)
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }() // the error of Write counts
	s := newSource()
	s.skip(w.Position().Seq)
	if s.at != w.Position() {
		panic(fmt.Sprintf("the table is at %+v, the log at %+v", w.Position(), s.at))
	}
	for s.at.Seq < end {
		if err := w.Write(ctx, s.next(int(min(uint64(size), end-s.at.Seq)))); err != nil {
			return err
		}
	}
	return nil
}
