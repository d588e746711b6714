package client

import "container/list"

// nearCost is what an entry of a near cache takes beside its value and twice its key, which the map has too, in bytes,
// about: itself, its place in the order and in the map, and the frame that the value is in.
const nearCost = 256

// nearList are entries by key, and in the order in which they were read last.
type nearList struct {
	most  int64
	bytes int64
	by    map[string]*list.Element
	order list.List // of *nearEntry, the one that was read last in front
}

type nearEntry struct{ Entry }

func (e *nearEntry) cost() int64 { return int64(2*len(e.Key)+len(e.Value)) + nearCost }

func (l *nearList) init(most int64) {
	l.most = most
	l.clear()
}

func (l *nearList) clear() {
	l.bytes, l.by = 0, map[string]*list.Element{}
	l.order.Init()
}

// find returns an entry, which counts as read; nil: it is not kept.
func (l *nearList) find(key []byte) *nearEntry {
	at := l.by[string(key)]
	if at == nil {
		return nil
	}
	l.order.MoveToFront(at)
	return at.Value.(*nearEntry)
}

// put keeps an entry, and returns how many others it had to drop. One that is larger than the list may be is not kept.
func (l *nearList) put(e Entry) (dropped uint64) {
	if old := l.by[string(e.Key)]; old != nil {
		l.drop(old.Value.(*nearEntry))
	}
	n := &nearEntry{e}
	if n.cost() > l.most {
		return 0
	}
	for l.bytes+n.cost() > l.most {
		l.drop(l.order.Back().Value.(*nearEntry))
		dropped++
	}
	l.by[string(e.Key)] = l.order.PushFront(n)
	l.bytes += n.cost()
	return dropped
}

func (l *nearList) drop(e *nearEntry) {
	l.order.Remove(l.by[string(e.Key)])
	delete(l.by, string(e.Key))
	l.bytes -= e.cost()
}
