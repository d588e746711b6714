package topics

import (
	"fmt"
	"math"
)

// Index holds subscriptions, each a number of the caller's with a pattern and a filter.
//
// Patterns are a trie by token. Where one ends are its subscriptions, apart by what their filters need: those without
// one; those with a set of values for a field, by value, so that a message finds them without looking at the others; and
// those with ranges and prefixes only, which are tried one after the other (subscriptions with the same conditions are
// tried once). The number of the latter is bounded by MaxTried; that of different further conditions with one value of one
// field and pattern by an eighth of it.
//
// Messages of one first token have the same fields, in the same order. So a pattern with a filter has to begin with a
// literal; the caller sees to that.
type Index struct {
	root     node
	subs     []sub // by number
	filtered map[uint32]*filtered
	count    int
	tried    int // distinct filters that are tried
	maxTried int
	topic    []byte
	ends     [MaxTokens]int
	tokens   int
	fields   []Value
	hits     []uint32
}

// MaxTried is the default bound on distinct conditions of an index that are tried one after the other.
const MaxTried = 4096

// NewIndex returns an empty index; maxTried is MaxTried when 0.
func NewIndex(maxTried int) *Index {
	if maxTried == 0 {
		maxTried = MaxTried
	}
	return &Index{maxTried: maxTried}
}

// node is a token of patterns below its parent.
type node struct {
	parent   *node
	token    string
	children map[string]*node
	one      *node // the token *
	here     *leaf // patterns that end here; nil: none
	below    *leaf // patterns that end with > behind here; nil: none
}

// sub is a subscription, and where it is listed. Most are to a pattern alone: there are many of them, so they are small.
type sub struct {
	leaf *leaf  // nil: there is none of the number
	at   uint32 // in leaf.all; byFilter: it has a filter, and its places are in Index.filtered
}

// byFilter is sub.at of a subscription with a filter.
const byFilter = math.MaxUint32

// filtered is where a subscription with a filter is listed: once, or for each value of a set.
type filtered struct{ places []place }

// Len returns the number of subscriptions.
func (x *Index) Len() int { return x.count }

// Add adds a subscription. Its number must not be in use; numbers should be small, they are indices of a slice.
func (x *Index) Add(id uint32, p Pattern, f Filter) error {
	if int(id) < len(x.subs) && x.subs[id].leaf != nil {
		return fmt.Errorf("subscription %d exists already, allowed: a number that is not in use", id)
	}
	l := x.reach(p)
	by := f.selective()
	if err := l.room(x, &f, by); err != nil {
		x.prune(l)
		return err
	}
	if int(id) >= len(x.subs) {
		x.subs = append(x.subs, make([]sub, int(id)+1-len(x.subs))...)
	}
	x.count++
	if len(f.terms) == 0 {
		x.subs[id] = sub{l, uint32(len(l.all))}
		l.all = append(l.all, id)
		return nil
	}
	x.subs[id] = sub{l, byFilter}
	if x.filtered == nil {
		x.filtered = map[uint32]*filtered{}
	}
	s := &filtered{}
	x.filtered[id] = s
	l.add(x, id, s, &f, by)
	return nil
}

// Shared returns the pattern of a subscription, which all that have the same share.
func (x *Index) Shared(id uint32) *Pattern { return &x.subs[id].leaf.pattern }

// reach returns the leaf of a pattern, and makes the way to it.
func (x *Index) reach(p Pattern) *leaf {
	n := &x.root
	for t, behind, more := split(p.text); ; t, behind, more = split(behind) {
		switch {
		case t == rest:
			if n.below == nil {
				n.below = &leaf{node: n, pattern: p}
			}
			return n.below
		case t == one:
			if n.one == nil {
				n.one = &node{parent: n, token: one}
			}
			n = n.one
		default:
			child := n.children[t]
			if child == nil {
				child = &node{parent: n, token: t}
				if n.children == nil {
					n.children = map[string]*node{}
				}
				n.children[t] = child
			}
			n = child
		}
		if !more {
			if n.here == nil {
				n.here = &leaf{node: n, pattern: p}
			}
			return n.here
		}
	}
}

// Remove removes a subscription, and reports whether there was one.
func (x *Index) Remove(id uint32) bool {
	if int(id) >= len(x.subs) || x.subs[id].leaf == nil {
		return false
	}
	s := x.subs[id]
	x.subs[id] = sub{}
	x.count--
	if s.at == byFilter {
		s.leaf.remove(x, x.filtered[id])
		delete(x.filtered, id)
	} else {
		s.leaf.leave(x, s.at)
	}
	x.prune(s.leaf)
	return true
}

// prune removes a leaf that nothing needs, and the nodes on the way to it.
func (x *Index) prune(l *leaf) {
	if !l.empty() {
		return
	}
	n := l.node
	if n.here == l {
		n.here = nil
	} else {
		n.below = nil
	}
	for ; n.parent != nil && n.empty(); n = n.parent {
		if n.token == one {
			n.parent.one = nil
		} else if delete(n.parent.children, n.token); len(n.parent.children) == 0 {
			n.parent.children = nil
		}
	}
}

func (n *node) empty() bool {
	return n.children == nil && n.one == nil && n.here == nil && n.below == nil
}

// Match appends the numbers of all subscriptions that a message is for to dst, each once, in no particular order. It
// allocates nothing if dst has room. A topic that CheckTopic refuses matches nothing, or what its tokens match.
func (x *Index) Match(topic []byte, fields []Value, dst []uint32) []uint32 {
	n := 0
	for i, c := range topic {
		if c != '.' {
			continue
		}
		if n == MaxTokens-1 {
			return dst
		}
		x.ends[n] = i
		n++
	}
	x.ends[n] = len(topic)
	x.topic, x.fields, x.hits, x.tokens = topic, fields, dst, n+1
	x.walk(&x.root, 0, 0)
	dst = x.hits
	x.topic, x.fields, x.hits = nil, nil, nil
	return dst
}

// walk is at a node behind depth tokens, the next of which begins at start.
func (x *Index) walk(n *node, depth, start int) {
	for {
		if depth == x.tokens {
			if n.here != nil {
				x.hits = n.here.match(x.fields, x.hits)
			}
			return
		}
		if n.below != nil {
			x.hits = n.below.match(x.fields, x.hits)
		}
		end := x.ends[depth]
		if n.one != nil {
			x.walk(n.one, depth+1, end+1)
		}
		if n.children == nil {
			return
		}
		if n = n.children[string(x.topic[start:end])]; n == nil {
			return
		}
		depth, start = depth+1, end+1
	}
}
