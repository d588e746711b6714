package function

// graph finds which calls can be recursive, and bounds how much stack the others take
// together. Only calls inside a cycle count their depth while they run.
type graph struct {
	m       *module
	plans   []*plan
	index   []int // order of visiting, 0 before
	low     []int
	onStack []bool
	stack   []uint32
	visited int
	cycles  int
	loops   []bool // by cycle: has a call inside itself
	heavy   []int  // by cycle: slots of its largest function
	tabled  []bool // by cycle: the table has a function of it
}

// edges calls visit with every function that f may call. A call by the table may reach
// every function that is in it.
func (g *graph) edges(f uint32, visit func(uint32)) {
	for _, c := range g.plans[f].calls {
		visit(c)
	}
	if g.plans[f].indirect {
		for _, c := range g.m.indirect {
			visit(c)
		}
	}
}

// analyse numbers the cycles in plans and refuses a module whose calls need too much stack
// without any recursion.
func analyse(m *module, plans []*plan) (*graph, error) {
	n := len(plans)
	g := &graph{m: m, plans: plans, index: make([]int, n), low: make([]int, n), onStack: make([]bool, n)}
	if err := g.boundEdges(); err != nil {
		return nil, err
	}
	worst := 0
	depth := make([]int, 0, n) // by cycle: slots of the longest chain of calls from it
	for f := range plans {
		if g.index[f] == 0 {
			g.connect(uint32(f), &depth)
		}
	}
	g.tabled = make([]bool, g.cycles)
	for _, f := range m.indirect {
		g.tabled[plans[f].cycle] = true
	}
	for _, d := range depth {
		worst = max(worst, d)
	}
	if worst > stackSlots {
		return nil, refuse(-1, "a chain of calls takes %d values of stack, at most %d are allowed; make functions smaller", worst, stackSlots)
	}
	return g, nil
}

// boundEdges keeps the number of edges in proportion to the module.
func (g *graph) boundEdges() error {
	callers := 0
	for _, p := range g.plans {
		if p.indirect {
			callers++
		}
	}
	if callers*len(g.m.indirect) > MaxModule {
		return refuse(-1, "%d functions call by a table of %d functions, at most %d pairs are allowed", callers, len(g.m.indirect), MaxModule)
	}
	return nil
}

// connect is Tarjan's algorithm. A cycle is complete before those that call it, so that
// depth is known for all it calls. Its recursion is bounded by the number of functions.
func (g *graph) connect(f uint32, depth *[]int) {
	g.visited++
	g.index[f], g.low[f] = g.visited, g.visited
	g.stack, g.onStack[f] = append(g.stack, f), true
	g.edges(f, func(c uint32) {
		if g.index[c] == 0 {
			g.connect(c, depth)
			g.low[f] = min(g.low[f], g.low[c])
		} else if g.onStack[c] {
			g.low[f] = min(g.low[f], g.index[c])
		}
	})
	if g.low[f] == g.index[f] {
		g.complete(f, depth)
	}
}

// complete takes the cycle that begins with f from the stack.
func (g *graph) complete(f uint32, depth *[]int) {
	from := len(g.stack) - 1
	for g.stack[from] != f {
		from--
	}
	members := g.stack[from:]
	for _, c := range members {
		g.onStack[c] = false
		g.plans[c].cycle = g.cycles
	}
	heavy, below, loops := 0, 0, false
	for _, c := range members {
		heavy = max(heavy, g.plans[c].slots+frameSlots)
		g.edges(c, func(to uint32) {
			if k := g.plans[to].cycle; k == g.cycles {
				loops = true
			} else {
				below = max(below, (*depth)[k])
			}
		})
	}
	*depth = append(*depth, heavy+below)
	g.loops = append(g.loops, loops)
	g.heavy = append(g.heavy, heavy)
	g.cycles++
	g.stack = g.stack[:from]
}

// weight is what a call takes of the budget of stack while it lasts: nothing if it cannot
// be recursive.
func (g *graph) weight(from uint32, in *instr) int64 {
	cycle := g.plans[from].cycle
	if !g.loops[cycle] {
		return 0
	}
	if in.op == opCall {
		if g.plans[in.a].cycle != cycle {
			return 0
		}
		return int64(g.plans[in.a].slots + frameSlots)
	}
	if !g.tabled[cycle] {
		return 0
	}
	return int64(g.heavy[cycle])
}
