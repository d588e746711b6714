package executor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
	"github.com/ordergrid/ordergrid/e2e/cluster/executor/packets"
)

// PodFinder finds the pods of nodes.
type PodFinder interface {
	Nodes(ctx context.Context) ([]string, error)
	// PodProcess is a process that lives as long as the pod's network, as this
	// host numbers it; 0 if the node runs no such pod.
	PodProcess(ctx context.Context, node, uid string) (int, error)
	// OwnNetwork reports whether a process has another network than its node.
	OwnNetwork(ctx context.Context, node string, pid int) (bool, error)
}

// Pods does faults to the packets of pods.
type Pods struct {
	Of PodFinder

	mu     sync.Mutex
	active map[string][]*packets.Fault // by the fault's id
	queues map[uint16]string           // ids by queue
}

// NewPods returns hands on the pods of a cluster.
func NewPods(of PodFinder) *Pods {
	return &Pods{Of: of, active: map[string][]*packets.Fault{}, queues: map[uint16]string{}}
}

// Offers implements Hands.
func (p *Pods) Offers(ctx context.Context) ([]executor.Offer, error) {
	nodes, err := p.Of.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	const through = "IPv4, in the pod's network namespace; "
	return []executor.Offer{
		{Type: executor.NetworkDelay, Nodes: nodes, Note: through + "every packet passes through a process, which itself takes about 0.1 ms"},
		{Type: executor.NetworkLoss, Nodes: nodes, Note: through + "only packets that are lost leave the kernel"},
		{Type: executor.NetworkDuplicate, Nodes: nodes, Note: through + "every packet passes through a process, which itself takes about 0.1 ms"},
		{Type: executor.NetworkCorrupt, Nodes: nodes, Note: through + "one bit behind the IP header; the receiver's checksum finds it"},
	}, nil
}

// Conflict implements Hands: a packet that one fault has queued does not meet
// the rules of another. Losses are drawn before the others.
func (p *Pods) Conflict(a, b *executor.Fault) string {
	if !executor.IsNetwork(a.Type) || a.Type == executor.NetworkLoss || b.Type == executor.NetworkLoss {
		return ""
	}
	for _, x := range a.Pods {
		for _, y := range b.Pods {
			if x.UID == y.UID {
				return fmt.Sprintf("the packets of pod %s are taken already", x.Name)
			}
		}
	}
	return ""
}

// noteQueue is the note of a fault's queue.
const noteQueue = "queue"

// firstQueue leaves the low numbers to others.
const firstQueue = 9000

// Inject implements Hands.
func (p *Pods) Inject(ctx context.Context, job *Job) (string, error) {
	for i, peer := range job.Fault.Peers {
		if addr, err := netip.ParseAddr(peer.IP); err != nil || !addr.Is4() {
			return "", fmt.Errorf("peers[%d].ip: %s is no IPv4 address; this executor does no other", i, peer.IP)
		}
	}
	job.Notes[noteQueue] = strconv.Itoa(int(p.takeQueue(job.ID)))
	if err := p.Adopt(ctx, job); err != nil {
		return "", err
	}
	var names []string
	for i := range job.Fault.Pods {
		names = append(names, job.Fault.Pods[i].Name)
	}
	return job.Fault.Type + " on the network of " + strings.Join(names, ", "), nil
}

func (p *Pods) takeQueue(id string) uint16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	queue := uint16(firstQueue)
	for p.queues[queue] != "" && p.queues[queue] != id {
		queue++ // there are fewer faults than numbers
	}
	p.queues[queue] = id
	return queue
}

// Adopt implements Hands: the rules are recreated, for a rule's queue to have
// this process behind it.
func (p *Pods) Adopt(ctx context.Context, job *Job) error {
	queue, err := strconv.ParseUint(job.Notes[noteQueue], 10, 16)
	if err != nil {
		return fmt.Errorf("the queue's number: %w", err)
	}
	p.mu.Lock()
	p.queues[uint16(queue)] = job.ID
	p.mu.Unlock()
	spec := packets.Spec{ID: job.ID, Type: job.Fault.Type, Parameters: job.Fault.Parameters, Queue: uint16(queue), Deadline: job.Deadline}
	for _, peer := range job.Fault.Peers {
		spec.Peers = append(spec.Peers, netip.MustParseAddr(peer.IP)) // Validate parsed it
	}
	for i := range job.Fault.Pods {
		namespace, err := p.namespace(ctx, &job.Fault.Pods[i])
		if err != nil {
			return err
		}
		fault, err := packets.Start(ctx, namespace, spec)
		if err != nil {
			return fmt.Errorf("pod %s: %w", job.Fault.Pods[i].Name, err)
		}
		p.mu.Lock()
		p.active[job.ID] = append(p.active[job.ID], fault)
		p.mu.Unlock()
	}
	return nil
}

func (p *Pods) namespace(ctx context.Context, pod *executor.Pod) (packets.Namespace, error) {
	pid, err := p.Of.PodProcess(ctx, pod.Node, pod.UID)
	if err != nil {
		return packets.Namespace{}, err
	}
	if pid == 0 {
		return packets.Namespace{}, fmt.Errorf("node %s runs no pod %s of UID %s", pod.Node, pod.Name, pod.UID)
	}
	own, err := p.Of.OwnNetwork(ctx, pod.Node, pid)
	if err == nil && !own {
		err = fmt.Errorf("pod %s uses its node's network (hostNetwork); a fault there would be one of the node", pod.Name)
	}
	return packets.Namespace{PID: pid}, err
}

// Recover implements Hands. A pod that is gone took its network and all rules
// with it. The rules go first: what comes then passes by the queue, and what
// waits in it is released.
func (p *Pods) Recover(ctx context.Context, job *Job) error {
	for i := range job.Fault.Pods {
		pod := &job.Fault.Pods[i]
		pid, err := p.Of.PodProcess(ctx, pod.Node, pod.UID)
		if err != nil {
			return err
		}
		if pid == 0 {
			continue
		}
		if err := packets.Remove(ctx, packets.Namespace{PID: pid}, job.ID); err != nil {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, fault := range p.active[job.ID] {
		_ = fault.Release() // no more packets arrive: a failure here has no effect
	}
	delete(p.active, job.ID)
	maps.DeleteFunc(p.queues, func(_ uint16, id string) bool { return id == job.ID })
	return nil
}

// Look implements Hands: it is the kernel's and the queue's counters.
func (p *Pods) Look(ctx context.Context, job *Job) (executor.Witness, error) {
	p.mu.Lock()
	faults := slices.Clone(p.active[job.ID])
	p.mu.Unlock()
	w := executor.Witness{Counters: map[string]int64{}, Seen: len(faults) > 0}
	hit := packets.HitCounter(job.Fault.Type)
	var errs []error
	for _, fault := range faults {
		counters, err := fault.Counters(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		w.Seen = w.Seen && counters[hit] > 0
		for name, n := range counters {
			w.Counters[name] += n
		}
	}
	if err := errors.Join(errs...); err != nil {
		return executor.Witness{}, err
	}
	w.Message = fmt.Sprintf("%d of %d packets %s", w.Counters[hit], w.Counters["matched"], hit)
	if over := w.Counters["overflow"]; over > 0 {
		w.Message += fmt.Sprintf("; %d lost because they came faster than they could be held", over)
	}
	return w, nil
}

// Close implements Hands: packets pass until the next process takes over.
func (p *Pods) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, faults := range p.active {
		for _, fault := range faults {
			_ = fault.Release() // this process ends
		}
	}
}
