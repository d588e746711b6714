package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/inspect"
)

var errReplicaGone = errors.New("the replica was discarded")

// startInspector starts the check of the committed log, on every copy.
func (p *partition) startInspector(ctx context.Context, inc *incarnation) error {
	reader, err := inc.feed.Reader("inspect")
	if err != nil {
		return fmt.Errorf("partition %s: %w", p.id, err)
	}
	inc.inspector = inspect.New(inspect.Options{Name: p.id.String(), Log: reader, Logger: p.log, Turns: p.all.inspections,
		Hold: func(seq uint64) (first uint64, err error) {
			err = p.onLoop(func() {
				if p.inc == inc {
					base, _ := inc.store.Base()
					first = max(seq, base+1)
					reader.Hold(first)
				}
			})
			if err == nil && first == 0 {
				err = errReplicaGone
			}
			return first, err
		}})
	inc.wg.Go(func() { inc.inspector.Run(ctx) })
	return nil
}
