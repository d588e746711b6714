package node

import (
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// Views of the orders of the partitions, which questions are asked of.
type Views struct {
	Memory int64 // bytes of all views of the node, taken from what MemoryLimit leaves to orders
	Rows   int   // entries of a partition that are in its view at a time; default 1,048,576
	Values int   // distinct texts of a column; default 65,536
	// Extra are columns for further tags. Postings and Ordered are the fields found without a scan, Ordered by ranges;
	// nil: Symbol and Account, and Price.
	Extra             []view.Extra
	Postings, Ordered []view.Field
	// OnBackups: a primary keeps no view while another copy is in sync.
	OnBackups bool

	handOver time.Duration // viewHandOver when 0
}

const defaultViewRows = 1 << 20

// minViews is the least memory for views, in bytes. Where the view of a partition finds no room it has none, and says so.
const minViews = 16 << 20

// viewHandOver is how long a primary keeps the view that it has as a backup, or while it was alone: questions are
// answered from it while another copy makes one.
const viewHandOver = time.Minute

// options of the view of one partition.
func (v *Views) options() view.Options {
	rows := v.Rows
	if rows == 0 {
		rows = defaultViewRows
	}
	return view.Options{Rows: rows, Values: v.Values, Extra: v.Extra, Postings: v.Postings, Ordered: v.Ordered}
}

// viewMemory is what views have of the memory for orders.
func (c *Config) viewMemory() int64 {
	if c.Views == nil {
		return 0
	}
	return c.Views.Memory
}

func (c *Config) checkViews() error {
	if c.Views == nil {
		return nil
	}
	each, err := view.Bytes(c.Views.options())
	if err != nil {
		return fmt.Errorf("--order-index, --view-rows, --view-values: %w", err)
	}
	most := planMemory(c.MemoryLimit, 1).orders / 2
	if m := c.Views.Memory; m < minViews || m > most {
		return fmt.Errorf("--views: value %d bytes, allowed: %d to %d, half of what --memory-limit leaves to orders; the view of one partition takes %d", m, minViews, most, each)
	}
	return nil
}
