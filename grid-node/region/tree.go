package region

// A region's keys are in a treap: by key from left to right, by priority from top to
// bottom. A priority is a hash of the key, so the shape is that of a random tree, and the
// same on every copy.

// find returns the head of a key, 0 for none.
func (a *arena) find(root uint32, key []byte) uint32 {
	for root != 0 {
		c := a.compare(key, root)
		switch {
		case c == 0:
			return root
		case c < 0:
			root = a.left(root)
		default:
			root = a.right(root)
		}
	}
	return 0
}

// finger looks up rising keys: each from where the one before was, so that neighbours cost few
// steps. It is of a tree that does not change meanwhile.
type finger struct {
	a    *arena
	over []uint32 // heads on the way to the last key whose keys are behind it
	next uint32   // what is left to search between that key and the last of those
}

// from begins at a root.
func (f *finger) from(root uint32) { f.over, f.next = f.over[:0], root }

// find returns the head of a key that is behind the one before, 0 for none.
func (f *finger) find(key []byte) uint32 {
	n := f.next
	for len(f.over) > 0 {
		top := f.over[len(f.over)-1]
		c := f.a.compare(key, top)
		if c < 0 {
			break
		}
		f.over = f.over[:len(f.over)-1]
		if f.next = f.a.right(top); c == 0 {
			return top
		}
		n = f.next
	}
	for n != 0 {
		c := f.a.compare(key, n)
		if c == 0 {
			f.next = f.a.right(n)
			return n
		}
		if c > 0 {
			n = f.a.right(n)
			continue
		}
		f.over = append(f.over, n)
		n = f.a.left(n)
	}
	f.next = 0
	return 0
}

// insert adds head n, whose key is not in the tree, and returns the root.
func (a *arena) insert(root, n uint32, key []byte) uint32 {
	switch {
	case root == 0 || a.prio(n) > a.prio(root):
		l, r := a.split(root, key)
		a.setLeft(n, l)
		a.setRight(n, r)
		return n
	case a.compare(key, root) < 0:
		a.setLeft(root, a.insert(a.left(root), n, key))
	default:
		a.setRight(root, a.insert(a.right(root), n, key))
	}
	return root
}

// split parts a tree into the keys before and behind one that it has not.
func (a *arena) split(root uint32, key []byte) (l, r uint32) {
	if root == 0 {
		return 0, 0
	}
	if a.compare(key, root) > 0 {
		l, r = a.split(a.right(root), key)
		a.setRight(root, l)
		return root, r
	}
	l, r = a.split(a.left(root), key)
	a.setLeft(root, r)
	return l, root
}

// remove takes a key out of the tree that has it, and returns the root.
func (a *arena) remove(root uint32, key []byte) uint32 {
	switch c := a.compare(key, root); {
	case c == 0:
		return a.merge(a.left(root), a.right(root))
	case c < 0:
		a.setLeft(root, a.remove(a.left(root), key))
	default:
		a.setRight(root, a.remove(a.right(root), key))
	}
	return root
}

// merge joins two trees; the keys of l are before those of r.
func (a *arena) merge(l, r uint32) uint32 {
	switch {
	case l == 0:
		return r
	case r == 0:
		return l
	case a.prio(l) > a.prio(r):
		a.setRight(l, a.merge(a.right(l), r))
		return l
	}
	a.setLeft(r, a.merge(l, a.left(r)))
	return r
}

// scan calls f for the heads of keys from one on, or behind it, in order, until f returns
// false. It returns false then.
func (a *arena) scan(root uint32, from []byte, behind bool, f func(n uint32) bool) bool {
	if root == 0 {
		return true
	}
	c := a.compare(from, root)
	if c < 0 && !a.scan(a.left(root), from, behind, f) {
		return false
	}
	if (c < 0 || c == 0 && !behind) && !f(root) {
		return false
	}
	return a.scan(a.right(root), from, behind, f)
}
