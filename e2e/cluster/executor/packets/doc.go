// Package packets harms the packets of one network namespace: delays, drops,
// doubles or damages them. It is for kernels without netem: iptables chooses
// the packets and hands them to this process through a netfilter queue.
// Connections that exist are hit like new ones. When this process dies the
// packets pass, and the rules stop matching at the fault's deadline.
package packets
