package node

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/function"
	"github.com/ordergrid/ordergrid/grid-node/function/post"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// postFunctions are called by every copy of every partition. Each node has them, since a
// log has functions until it is changed, whatever a node was given. Of the data loop.
type postFunctions struct {
	*process
	code    *post.Code
	want    []order.Function
	modules map[[sha256.Size]byte][]byte
	faults  map[string]*faultLog
}

func (f *PostFunction) defined() order.Function {
	d := order.Function{Name: f.Name, SHA256: f.SHA256, Fuel: uint32(min(max(f.Fuel, 0), 1<<31)), Pages: f.Pages, Config: string(f.Config)}
	setDefault(&d.Fuel, 100_000)
	setDefault(&d.Pages, 16)
	return d
}

// recordBytes bounds what a partition holds of records.
func (c *Config) recordBytes() int64 {
	return min(max(c.MemoryLimit/64/int64(max(c.Partitions, 1)), 64<<10), 16<<20)
}

func (fs *Functions) checkPost() (errs []error) {
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("--function-post: "+format, args...)) }
	if n := len(fs.Post); n > order.MaxFunctions {
		bad("%d functions, allowed: at most %d", n, order.MaxFunctions)
	}
	seen := map[string]bool{}
	for i := range fs.Post {
		f := &fs.Post[i]
		d := f.defined()
		if err := d.Validate(); err != nil {
			bad("%w", err)
		}
		switch digest := sha256.Sum256(f.Module); {
		case seen[f.Name]:
			bad("name %q, allowed: each name once", f.Name)
		case digest != f.SHA256:
			bad("%s: the module has sha256 %x, allowed: %x; deploy the module that was named, or name the one that is deployed", f.Name, digest, f.SHA256)
		case len(f.Module) > order.MaxFunctionModule:
			bad("%s: the module has %d bytes, allowed: %d", f.Name, len(f.Module), order.MaxFunctionModule)
		}
		seen[f.Name] = true
	}
	return errs
}

// newPostFunctions loads those of the configuration: up to seconds, before the node serves.
func newPostFunctions(p *process) (*postFunctions, error) {
	f := &postFunctions{process: p, code: post.New(), modules: map[[sha256.Size]byte][]byte{}, faults: map[string]*faultLog{}}
	f.code.OnFault = f.failed
	if p.cfg.Functions == nil {
		return f, nil
	}
	for i := range p.cfg.Functions.Post {
		c := &p.cfg.Functions.Post[i]
		d := c.defined()
		if err := f.code.Load(&d, c.Module); err != nil {
			return nil, fmt.Errorf("--function-post: %s: %w", c.Name, err)
		}
		f.want, f.modules[c.SHA256] = append(f.want, d), c.Module
		p.log.Info("function loaded", "function", c.Name, "kind", function.Post.String(), "sha256", fmt.Sprintf("%x", c.SHA256))
	}
	return f, nil
}

// options are those of a partition.
func (f *postFunctions) options() *replica.Functions {
	return &replica.Functions{Code: f.code, Want: f.want, Modules: f.modules, RecordBytes: f.cfg.recordBytes()}
}

// failed logs a failed call with the number of its entry, a line a second.
func (f *postFunctions) failed(name string, seq uint64, fault string) {
	l := f.faults[name]
	if l == nil {
		l = &faultLog{}
		f.faults[name] = l
	}
	now := f.loop.Clock().Mono()
	if l.at != 0 && now-l.at < alarmInterval {
		l.skipped++
		return
	}
	f.log.Warn("a function failed", "function", name, "entry", seq, "fault", fault, "notLogged", l.skipped)
	l.at, l.skipped = now, 0
}

// counts returns those of the functions in force, of all partitions together.
func (ps *partitions) postCounts() (list []metrics.PostFunction) {
	for _, p := range ps.list {
		p.replica.FunctionCounts(func(f *order.Function, c *machine.FunctionCounts) {
			at := slices.IndexFunc(list, func(m metrics.PostFunction) bool {
				return m.Name == f.Name && m.SHA256 == fmt.Sprintf("%x", f.SHA256)
			})
			if at < 0 {
				at = len(list)
				list = append(list, metrics.PostFunction{Name: f.Name, SHA256: fmt.Sprintf("%x", f.SHA256), FuelLimit: int64(f.Fuel)})
			}
			list[at].Partitions++
			list[at].Counts.Add(c)
		})
	}
	return list
}

// postStatus has the functions in force.
func (ps *partitions) postStatus() (list []nodestatus.PostFunction) {
	for _, m := range ps.postCounts() {
		s := nodestatus.PostFunction{Name: m.Name, SHA256: m.SHA256, Partitions: m.Partitions, Records: m.Counts.Records, None: m.Counts.None}
		for _, n := range m.Counts.Failed {
			s.Failed += n
		}
		list = append(list, s)
	}
	return list
}

// postPage is for the page of the memory: what the logs of the partitions that this node
// leads have in force. It is nil where neither they nor the node have functions.
func (ps *partitions) postPage() *nodestatus.Posts {
	page := &nodestatus.Posts{}
	for _, p := range ps.list {
		if p.status.Role != replica.RolePrimary {
			continue
		}
		list, at := p.replica.FunctionsInForce()
		for _, f := range list {
			in := nodestatus.PostInForce{Name: f.Name, SHA256: fmt.Sprintf("%x", f.SHA256), Fuel: f.Fuel, Pages: f.Pages, Partitions: 1}
			if f.Config != "" {
				in.ConfigSHA256 = fmt.Sprintf("%x", sha256.Sum256([]byte(f.Config)))
			}
			page.Add(in)
		}
		switch {
		case !slices.Equal(list, ps.posts.want):
			page.Waiting = append(page.Waiting, p.id.String())
		case at > 0:
			page.Since = append(page.Since, nodestatus.PostsSince{Partition: p.id.String(), Entry: at})
		}
	}
	if len(page.InForce)+len(page.Waiting)+len(page.Since)+len(ps.posts.want) == 0 {
		return nil
	}
	return page
}
