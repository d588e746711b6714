package metrics

import (
	"os"
	"strconv"
	"strings"
)

// interfaceBytes is what the kernel counted on one network interface.
type interfaceBytes struct {
	name               string
	received, sent     uint64
	receivedIn, sentIn uint64 // packets
}

// maxInterfaces bounds the values of the label interface. A pod has a handful; a node on
// the host network may see one per pod.
const maxInterfaces = 16

var (
	ifaceBytes   = desc("interface_bytes_total", "Bytes on a network interface of the pod, by direction (received, sent), of all traffic of the pod.", "interface", "direction")
	ifacePackets = desc("interface_packets_total", "Packets on a network interface of the pod, by direction (received, sent).", "interface", "direction")
)

// readInterfaces reads the kernel's counters; none if it has no such file.
func readInterfaces() []interfaceBytes {
	b, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		return nil
	}
	return parseInterfaces(string(b))
}

// parseInterfaces reads /proc/net/dev: two lines of headings, then a name, a colon
// and 16 numbers, of which the 1st and 2nd are bytes and packets received, the 9th
// and 10th sent.
func parseInterfaces(text string) (list []interfaceBytes) {
	for line := range strings.Lines(text) {
		name, rest, found := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if !found || len(fields) < 16 || len(list) == maxInterfaces {
			continue
		}
		i := interfaceBytes{name: strings.TrimSpace(name)}
		for at, into := range map[int]*uint64{0: &i.received, 1: &i.receivedIn, 8: &i.sent, 9: &i.sentIn} {
			*into, _ = strconv.ParseUint(fields[at], 10, 64) // the kernel writes numbers
		}
		list = append(list, i)
	}
	return list
}

func (e emitter) interfaces(list []interfaceBytes) {
	for _, i := range list {
		e.counter(ifaceBytes, i.received, i.name, "received")
		e.counter(ifaceBytes, i.sent, i.name, "sent")
		e.counter(ifacePackets, i.receivedIn, i.name, "received")
		e.counter(ifacePackets, i.sentIn, i.name, "sent")
	}
}
