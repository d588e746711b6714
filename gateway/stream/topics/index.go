package topics

import "fmt"

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
	subs     []*sub // by number; nil: none
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
	here     leaf  // patterns that end here
	below    leaf  // patterns that end with > behind here
}

// sub is a subscription, and where it is listed.
type sub struct {
	at    *node
	leaf  *leaf
	place place   // the first; most have no other
	more  []place // those of the further values of a set
}

// placed adds a place.
func (s *sub) placed(p place) {
	if s.place.bucket == nil {
		s.place = p
	} else {
		s.more = append(s.more, p)
	}
}

func (s *sub) places() int {
	if s.place.bucket == nil {
		return 0
	}
	return 1 + len(s.more)
}

func (s *sub) placeAt(i int) *place {
	if i == 0 {
		return &s.place
	}
	return &s.more[i-1]
}

// Len returns the number of subscriptions.
func (x *Index) Len() int { return x.count }

// Add adds a subscription. Its number must not be in use; numbers should be small, they are indices of a slice.
func (x *Index) Add(id uint32, p Pattern, f Filter) error {
	if int(id) < len(x.subs) && x.subs[id] != nil {
		return fmt.Errorf("subscription %d exists already, allowed: a number that is not in use", id)
	}
	by := f.selective()
	n, l := x.reach(p)
	if err := l.room(x, &f, by); err != nil {
		x.prune(n)
		return err
	}
	s := &sub{at: n, leaf: l}
	if int(id) >= len(x.subs) {
		x.subs = append(x.subs, make([]*sub, int(id)+1-len(x.subs))...)
	}
	x.subs[id] = s
	x.count++
	l.add(x, id, s, &f, by)
	return nil
}

// reach returns the leaf of a pattern, and makes the way to it.
func (x *Index) reach(p Pattern) (*node, *leaf) {
	n := &x.root
	for t, behind, more := split(p.text); ; t, behind, more = split(behind) {
		switch {
		case t == rest:
			return n, &n.below
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
			return n, &n.here
		}
	}
}

// Remove removes a subscription, and reports whether there was one.
func (x *Index) Remove(id uint32) bool {
	if int(id) >= len(x.subs) || x.subs[id] == nil {
		return false
	}
	s := x.subs[id]
	x.subs[id] = nil
	x.count--
	s.leaf.remove(x, s)
	x.prune(s.at)
	return true
}

// prune removes a node that nothing needs, and what it was the last child of.
func (x *Index) prune(n *node) {
	for ; n.parent != nil && n.empty(); n = n.parent {
		if n.token == one {
			n.parent.one = nil
		} else if delete(n.parent.children, n.token); len(n.parent.children) == 0 {
			n.parent.children = nil
		}
	}
}

func (n *node) empty() bool {
	return n.children == nil && n.one == nil && n.here.empty() && n.below.empty()
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
			if n.here.used {
				x.hits = n.here.match(x.fields, x.hits)
			}
			return
		}
		if n.below.used {
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
