// Package post runs functions of kind Post for the state machine of a partition: it
// implements machine.Code. Functions are loaded once a process, by goroutines of their own,
// since compiling takes up to seconds; each state of a partition has its own instance.
//
// The decisions are ADR 63.
package post

import (
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"sync"

	"github.com/ordergrid/ordergrid/grid-node/function"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// maxLoaded is how many functions stay loaded that are not in use: those of a change and of
// the one before, for both states of partitions that change at different times.
const maxLoaded = 4 * order.MaxFunctions

// Code loads functions. Its methods may be called by several goroutines.
type Code struct {
	mu     sync.Mutex
	loaded map[order.Function]*loading
	order  []order.Function // by age
	// OnFault is called after a failed call, by the goroutine that called, when an entry is
	// stored and again when it is freed; nil: not.
	OnFault func(name string, seq uint64, fault string)
}

type loading struct {
	done   chan struct{}
	module *function.Module
	err    error
}

// New returns a Code without functions.
func New() *Code {
	return &Code{loaded: map[order.Function]*loading{}}
}

// Start implements machine.Code.
func (c *Code) Start(f *order.Function, module []byte) { c.start(f, module) }

func (c *Code) start(f *order.Function, module []byte) *loading {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.loaded[*f]
	if l != nil {
		return l
	}
	l = &loading{done: make(chan struct{})}
	c.loaded[*f] = l
	if c.order = append(c.order, *f); len(c.order) > maxLoaded { // instances keep the module that they are of
		delete(c.loaded, c.order[0])
		c.order = c.order[1:]
	}
	go func(f order.Function) {
		defer close(l.done)
		if got := sha256.Sum256(module); got != f.SHA256 {
			l.err = fmt.Errorf("its module has SHA-256 %x, allowed: %x", got, f.SHA256)
			return
		}
		l.module, l.err = function.Load(context.Background(), module, function.Post, function.Options{Pages: f.Pages, Fuel: int64(f.Fuel), Config: []byte(f.Config)})
		if l.err == nil {
			runtime.SetFinalizer(l, func(l *loading) { _ = l.module.Close(context.Background()) }) // of memory only
		}
	}(*f)
	return l
}

// Load implements machine.Code.
func (c *Code) Load(f *order.Function, module []byte) error {
	l := c.start(f, module)
	<-l.done
	return l.err
}

// Loaded implements machine.Code.
func (c *Code) Loaded(f *order.Function) bool {
	c.mu.Lock()
	l := c.loaded[*f]
	c.mu.Unlock()
	if l == nil {
		return false
	}
	select {
	case <-l.done:
		return l.err == nil
	default:
		return false
	}
}

// New implements machine.Code.
func (c *Code) New(f *order.Function) (machine.Function, error) {
	c.mu.Lock()
	l := c.loaded[*f]
	c.mu.Unlock()
	if l == nil {
		return nil, fmt.Errorf("function %s is not loaded", f.Name)
	}
	if <-l.done; l.err != nil {
		return nil, l.err
	}
	inst, err := l.module.Instance(context.Background())
	if err != nil {
		return nil, err
	}
	i := &instance{code: c, name: f.Name, of: l, inst: inst}
	runtime.SetFinalizer(i, func(i *instance) { _ = i.inst.Close(context.Background()) }) // of memory only
	return i, nil
}

// instance is a function with the state that it has in one state of a partition.
type instance struct {
	code *Code
	name string
	of   *loading // keeps its code
	inst *function.Instance
}

// Call implements machine.Function.
func (i *instance) Call(seq uint64, timeNs int64, message []byte) ([]byte, uint8) {
	record, fault := i.inst.Record(context.Background(), &function.Order{Seq: seq, Time: timeNs, Raw: message})
	if fault != function.None && i.code.OnFault != nil {
		i.code.OnFault(i.name, seq, i.inst.Err(fault).Error())
	}
	return record, uint8(fault)
}

// Used implements machine.Function.
func (i *instance) Used() int64 { return i.inst.Used() }

// AppendState implements machine.Function.
func (i *instance) AppendState(dst []byte) []byte { return i.inst.AppendState(dst) }

// Restore implements machine.Function.
func (i *instance) Restore(state []byte) error { return i.inst.Restore(state) }

// Digest implements machine.Function.
func (i *instance) Digest() uint64 { return i.inst.Digest() }
