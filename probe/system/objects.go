package system

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/published"
	"github.com/ordergrid/ordergrid/probe/report"
)

const (
	// objectSize is the bytes of a value; its first ones are what is changed.
	objectSize = 150
	// objectBlocks is the memory of a value of that size with its key, in a region that is there twice.
	objectBlocks = 2 * 256
	// dropLimit is how long a region may take to be dropped; published: less than a second.
	dropLimit = time.Second
)

// objects is a grid with regions.
type objects struct {
	grid *devgrid.Grid
	c    *client.Client
}

// newObjects starts a grid whose regions hold so many objects.
func (o *Options) newObjects(ctx context.Context, n int, regions ...string) (*objects, error) {
	return o.newObjectsWith(ctx, n, nil, regions...)
}

// newObjectsWith is newObjects with more arguments for each node.
func (o *Options) newObjectsWith(ctx context.Context, n int, args []string, regions ...string) (*objects, error) {
	return o.newObjectsOn(ctx, n, 1, 2, args, regions...)
}

// newObjectsOn is newObjectsWith with so many shards of so many copies.
func (o *Options) newObjectsOn(ctx context.Context, n, shards, replicas int, args []string, regions ...string) (_ *objects, err error) {
	memory := int64(64) + int64(n)*objectBlocks*3/2>>20
	limit := max(2*memory, memory+gridMiB(3*n)) // changes are entries of the log
	file := filepath.Join(o.Dir, "regions.yaml")
	text := fmt.Sprintf("memory: %dMi\nregions:\n- name: %s\n", memory, strings.Join(regions, "\n- name: "))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	if file, err = filepath.Abs(file); err != nil {
		return nil, err
	}
	k := &objects{}
	if k.grid, err = o.nodes(ctx, shards, replicas, limit, append([]string{"--", "--regions", file}, args...)...); err != nil {
		return nil, err
	}
	if k.c, err = client.Dial(ctx, client.Config{Endpoints: k.grid.Endpoints, RequestTimeout: time.Minute}); err != nil {
		return nil, errors.Join(err, k.grid.Stop())
	}
	return k, nil
}

func (k *objects) end() error {
	_ = k.c.Close() // it never fails
	return k.grid.Stop()
}

func objectKey(i int) []byte { return fmt.Appendf(nil, "K%010d", i) }

// objectValue begins with a mark.
func objectValue(mark string) []byte {
	return append([]byte(mark), bytes.Repeat([]byte{'.'}, objectSize-len(mark))...)
}

// fill puts n objects into a region.
func (k *objects) fill(ctx context.Context, region string, n int, mark string) error {
	r, value := k.c.Region(region), objectValue(mark)
	return each(ctx, n, func(ctx context.Context, i int) error {
		_, err := r.Put(ctx, objectKey(i), value)
		return err
	})
}

// counted counts the objects of a region, and those with a mark.
func (k *objects) counted(ctx context.Context, region, mark string) (all, marked int, err error) {
	err = k.c.Region(region).Scan(ctx, nil, func(e client.Entry) error {
		all++
		if bytes.HasPrefix(e.Value, []byte(mark)) {
			marked++
		}
		return nil
	})
	return all, marked, err
}

// traffic has clients change and read objects of a region of their own until stop is called.
func (k *objects) traffic(ctx context.Context, users int) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	r, value := k.c.Region("others"), objectValue("other")
	go func() {
		ended <- each(ctx, users, func(ctx context.Context, u int) error {
			for ctx.Err() == nil {
				if _, err := r.Put(ctx, objectKey(u), value); err != nil {
					return err
				}
				if _, err := r.Get(ctx, objectKey(u)); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	return func() error {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
}

// updates changes a share of the objects in place, and replaces the region by another one.
func updates(ctx context.Context, d *published.Data, s published.Scenario, o Options, r *Report) (err error) {
	p, err := cachesOf(d, s, o.Mode)
	if err != nil {
		return err
	}
	k, err := o.newObjects(ctx, 2*p.Rows, "positions", "fresh", "others")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.end()) }()
	changed := int(float64(p.Rows) * p.Share)
	was := d.FactNumbers("bar.update") // in place, and by another cache
	if len(was) != 2 {
		return fmt.Errorf("published.json: fact bar.update is %v, must be two numbers", was)
	}
	r.Columns = []string{"way", "objects", "changes", "seconds", "changes/s", "published s"}
	r.Differences = append(r.Differences, fmt.Sprintf("%d objects of %d bytes in a region; %d changes are under way at a time, beside %d other clients", p.Rows, objectSize, together, p.Users))
	o.Say("%d objects", p.Rows)
	if err := k.fill(ctx, "positions", p.Rows, "old"); err != nil {
		return err
	}
	stop := k.traffic(ctx, p.Users)
	inPlace, replaced, err := k.bothWays(ctx, r, p.Rows, changed)
	if err = errors.Join(err, stop()); err != nil {
		return err
	}
	r.row("in place", p.Rows, changed, fmt.Sprintf("%.2f", inPlace.Seconds()), fmt.Sprintf("%.0f", float64(changed)/inPlace.Seconds()), was[0])
	r.row("another region, and drop", p.Rows, p.Rows, fmt.Sprintf("%.2f", replaced.Seconds()), fmt.Sprintf("%.0f", float64(p.Rows)/replaced.Seconds()), was[1])
	ratio := replaced.Seconds() / inPlace.Seconds()
	r.figure(report.Comparison{Table: report.ProsePrefix + "bar.update", Metric: "another region by in place", Published: was[1] / was[0], Derived: true}, ratio)
	if ratio <= 1 {
		r.judge(Fail, "another region takes %.2f of changes in place, allowed: more than 1 (published %.2f)", ratio, was[1]/was[0])
	}
	return nil
}

// bothWays patches all that is to change but one, which is the control, then that one; then writes all of another region
// and drops the first.
func (k *objects) bothWays(ctx context.Context, r *Report, rows, changed int) (inPlace, replaced time.Duration, err error) {
	positions := k.c.Region("positions")
	patch := func(ctx context.Context, i int) error {
		_, err := positions.Patch(ctx, objectKey(i), 0, []byte("new"))
		return err
	}
	begun := time.Now()
	if err := each(ctx, changed-1, patch); err != nil {
		return 0, 0, err
	}
	inPlace = time.Since(begun)
	all, one, err := k.counted(ctx, "positions", "new")
	if err != nil {
		return 0, 0, err
	}
	r.Control = fmt.Sprintf("of %d changes one was left out: a scan found %d of %d objects changed", changed, one, all)
	if one != changed-1 {
		r.judge(Invalid, "the control found %d objects changed, and one of %d was left out: the scan is not to be believed", one, changed)
	}
	begun = time.Now()
	if err := patch(ctx, changed-1); err != nil {
		return 0, 0, err
	}
	inPlace += time.Since(begun)
	if all, one, err = k.counted(ctx, "positions", "new"); err != nil {
		return 0, 0, err
	}
	if all != rows || one != changed {
		r.judge(Wrong, "%d objects, %d of them changed; there are %d, and %d were", all, one, rows, changed)
	}
	begun = time.Now()
	if err := errors.Join(k.fill(ctx, "fresh", rows, "new"), positions.Clear(ctx)); err != nil {
		return 0, 0, err
	}
	replaced = time.Since(begun)
	fresh, _, err := k.counted(ctx, "fresh", "")
	if err != nil {
		return 0, 0, err
	}
	old, _, err := k.counted(ctx, "positions", "")
	if fresh != rows || old != 0 {
		r.judge(Wrong, "%d objects in the other region, %d left in the first; there are %d", fresh, old, rows)
	}
	return inPlace, replaced, err
}

// drops removes all objects of a region at once.
func drops(ctx context.Context, d *published.Data, s published.Scenario, o Options, r *Report) (err error) {
	p, err := cachesOf(d, s, o.Mode)
	if err != nil {
		return err
	}
	k, err := o.newObjects(ctx, p.Rows, "positions")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, k.end()) }()
	r.Columns = []string{"objects", "drop ms", "KiB before", "KiB after", "left", "published"}
	r.Differences = append(r.Differences, fmt.Sprintf("%d objects of %d bytes in a region, which is cleared", p.Rows, objectSize))
	for _, n := range []int{p.Rows / 4, p.Rows} {
		o.Say("%d objects", n)
		took, err := k.drop(ctx, r, n)
		if err != nil {
			return err
		}
		if was, ok := d.FactNumber("bar.delete"); ok && n == p.Rows {
			r.beside(report.Comparison{Table: report.ProsePrefix + "bar.delete", Metric: "drop, published as less than", Unit: "s", Published: was, At: fmt.Sprintf("%d objects", n)}, took.Seconds())
		}
	}
	return nil
}

// drop fills a region and clears it.
func (k *objects) drop(ctx context.Context, r *Report, n int) (took time.Duration, err error) {
	if err := k.fill(ctx, "positions", n, "old"); err != nil {
		return 0, err
	}
	before, err := k.size(ctx, "positions")
	if err != nil {
		return 0, err
	}
	there, _, err := k.counted(ctx, "positions", "")
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := k.c.Region("positions").Clear(ctx); err != nil {
		return 0, err
	}
	took = time.Since(begun)
	left, _, err := k.counted(ctx, "positions", "")
	if err != nil {
		return 0, err
	}
	after, err := k.size(ctx, "positions")
	if err != nil {
		return 0, err
	}
	r.Control = fmt.Sprintf("the scan that counts what is left found %d objects before the drop", there)
	if there != n {
		r.judge(Invalid, "%d objects are found before the drop, there are %d: the scan is not to be believed", there, n)
	}
	if left != 0 || after != 0 {
		r.judge(Wrong, "%d objects and %d bytes are left", left, after)
	}
	if took >= dropLimit {
		r.judge(Fail, "the drop took %v, allowed: less than %v", took, dropLimit)
	}
	r.row(n, ms(took), before>>10, after>>10, left, "< 1 s")
	return took, nil
}

// size is the bytes of a region.
func (k *objects) size(ctx context.Context, name string) (uint64, error) {
	list, err := k.c.Regions(ctx)
	for _, i := range list {
		if i.Name == name {
			return i.Bytes, err
		}
	}
	return 0, err
}
