package packets

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
)

// Rules is what leads packets of one network namespace to a queue. All of a
// fault's rules are in chains of its own, named after its id, and carry the id
// as a comment.
type Rules struct {
	ID    string
	Queue uint16
	// To and From select packets: sent, received.
	To, From bool
	// Interface is the network interface, empty for all but loopback.
	Interface string
	// Peers are the addresses at the other end; none means any.
	Peers []netip.Addr
	// Percent of the packets are led to the queue, chosen by the kernel at
	// random. 100 or more means all of them.
	Percent float64
	// First puts the rules before those of other faults.
	First bool
	// Until is when the rules stop matching by themselves, in whole seconds.
	Until time.Time
}

// table is where the rules are: mangle comes before the address translation
// and the filters a pod may have.
const table = "mangle"

// chainPrefix begins the names of all chains of an executor.
const chainPrefix = "OGFAULT-"

// commentPrefix begins the comments.
const commentPrefix = "ordergrid-executor "

// The rules of a chain, as their comments end.
const (
	ruleMatched = "matched" // counts every packet of the fault
	ruleQueued  = "queued"  // leads it to the queue
)

// hooks are the two directions.
var hooks = []struct{ chain, suffix, in, address string }{
	{"OUTPUT", "TO", "-o", "-d"},
	{"INPUT", "FROM", "-i", "-s"},
}

// chain is the name of a fault's chain of one direction; iptables allows 28 bytes.
func chain(id, suffix string) string {
	sum := sha256.Sum256([]byte(id))
	return fmt.Sprintf("%s%x-%s", chainPrefix, sum[:6], suffix)
}

// restore is the input of iptables-restore that adds the rules.
func (r *Rules) restore() string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%s\n", table)
	for i, hook := range hooks {
		if i == 0 && !r.To || i == 1 && !r.From {
			continue
		}
		name := chain(r.ID, hook.suffix)
		fmt.Fprintf(&b, ":%s -\n", name)
		for _, match := range r.matches(hook.in, hook.address) {
			// Two rules: how many packets there were, and those chosen.
			fmt.Fprintf(&b, "-A %s %s%s\n", name, match, r.comment(ruleMatched))
			fmt.Fprintf(&b, "-A %s %s%s%s -j NFQUEUE --queue-num %d --queue-bypass\n", name, match, r.choice(), r.comment(ruleQueued), r.Queue)
		}
		if r.First {
			fmt.Fprintf(&b, "-I %s 1 -j %s\n", hook.chain, name)
		} else {
			fmt.Fprintf(&b, "-A %s -j %s\n", hook.chain, name)
		}
	}
	b.WriteString("COMMIT\n")
	return b.String()
}

// matches are the conditions of one direction, one per peer.
func (r *Rules) matches(in, address string) []string {
	iface := "! " + in + " lo"
	if r.Interface != "" {
		iface = in + " " + r.Interface
	}
	iface += fmt.Sprintf(" -m mark ! --mark %#x", copyMark)
	// The kernel ends the fault at its deadline even when no executor runs.
	until := " -m time --datestop " + r.Until.UTC().Format("2006-01-02T15:04:05")
	if len(r.Peers) == 0 {
		return []string{iface + until}
	}
	var all []string
	for _, peer := range r.Peers {
		all = append(all, iface+" "+address+" "+peer.String()+"/32"+until)
	}
	return all
}

func (r *Rules) choice() string {
	if r.Percent >= 100 {
		return ""
	}
	return " -m statistic --mode random --probability " + strconv.FormatFloat(r.Percent/100, 'f', 10, 64)
}

func (r *Rules) comment(kind string) string {
	return fmt.Sprintf(` -m comment --comment "%s%s %s"`, commentPrefix, r.ID, kind)
}

// install adds the rules in one step. Those of an earlier try are removed first.
func (r *Rules) install(ctx context.Context, n Namespace) error {
	if err := Remove(ctx, n, r.ID); err != nil {
		return err
	}
	_, err := n.run(ctx, r.restore(), "iptables-restore", "-w", "--noflush")
	return err
}

// Remove takes a fault's rules from a namespace. None there is no error.
func Remove(ctx context.Context, n Namespace, id string) error {
	return remove(ctx, n, func(name string) bool {
		return name == chain(id, hooks[0].suffix) || name == chain(id, hooks[1].suffix)
	})
}

// RemoveAll takes every executor's rules from a namespace and returns how many
// chains there were.
func RemoveAll(ctx context.Context, n Namespace) (int, error) {
	count := 0
	err := remove(ctx, n, func(string) bool { count++; return true })
	return count, err
}

func remove(ctx context.Context, n Namespace, which func(chain string) bool) error {
	saved, err := n.run(ctx, "", "iptables-save", "-t", table)
	if err != nil {
		return err
	}
	var jumps, chains strings.Builder
	for line := range strings.Lines(saved) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, ":"), " ")
		if !strings.HasPrefix(line, ":"+chainPrefix) || !which(name) {
			continue
		}
		fmt.Fprintf(&chains, "-F %s\n-X %s\n", name, name)
		for _, hook := range hooks {
			if jump := " " + hook.chain + " -j " + name + "\n"; strings.Contains(saved, "-A"+jump) {
				jumps.WriteString("-D" + jump)
			}
		}
	}
	if chains.Len() == 0 {
		return nil
	}
	_, err = n.run(ctx, "*"+table+"\n"+jumps.String()+chains.String()+"COMMIT\n", "iptables-restore", "-w", "--noflush")
	return err
}

// Left lists the comments of the rules executors have in a namespace, which
// name the faults.
func Left(ctx context.Context, n Namespace) ([]string, error) {
	saved, err := n.run(ctx, "", "iptables-save", "-t", table)
	if err != nil {
		return nil, err
	}
	var left []string
	for line := range strings.Lines(saved) {
		if _, rest, ok := strings.Cut(line, commentPrefix); ok {
			comment, _, _ := strings.Cut(rest, `"`)
			left = append(left, comment)
		}
	}
	return left, nil
}

// count reads how many packets matched a fault's rules, and how many of them
// were led to the queue.
func count(ctx context.Context, n Namespace, id string) (matched, queued int64, err error) {
	saved, err := n.run(ctx, "", "iptables-save", "-c", "-t", table)
	if err != nil {
		return 0, 0, err
	}
	matched, queued = parseCounts(saved, id)
	return matched, queued, nil
}

// parseCounts adds up lines such as
//
//	[12:3456] -A OGFAULT-… -m comment --comment "ordergrid-executor ID matched"
func parseCounts(saved, id string) (matched, queued int64) {
	for line := range strings.Lines(saved) {
		var packets, bytes int64
		if _, err := fmt.Sscanf(line, "[%d:%d]", &packets, &bytes); err != nil {
			continue
		}
		if strings.Contains(line, `"`+commentPrefix+id+" "+ruleMatched+`"`) {
			matched += packets
		}
		if strings.Contains(line, `"`+commentPrefix+id+" "+ruleQueued+`"`) {
			queued += packets
		}
	}
	return matched, queued
}

// directions of the protocol.
func directions(direction string) (to, from bool) {
	switch direction {
	case executor.DirectionFrom:
		return false, true
	case executor.DirectionBoth:
		return true, true
	}
	return true, false
}
