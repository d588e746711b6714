package fetch

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	dialTimeout   = 5 * time.Second
	answerTimeout = 10 * time.Second // to the first byte of an answer
	maxHeader     = 64 << 10
)

// CheckHost reports what is wrong with a host that is to be allowed: HOST, HOST:PORT, or the same with *.DOMAIN for
// every host below a domain, or with an IP address. Without a port it is 443.
func CheckHost(entry string) error {
	host, port := split(entry)
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("port %q is no port; give a number from 1 to 65535", port)
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	if len(validation.IsDNS1123Subdomain(strings.TrimPrefix(host, "*."))) > 0 {
		return fmt.Errorf("%q is no host; write registry.example, registry.example:5000, *.example, or an IP address, in lower case", host)
	}
	return nil
}

// split returns host and port of an entry, or of the host of an https URL.
func split(entry string) (host, port string) {
	if host, port, err := net.SplitHostPort(entry); err == nil {
		return host, port
	}
	return strings.Trim(entry, "[]"), "443"
}

// permits reports why a URL may not be asked.
func (c *Client) permits(u *url.URL) error {
	switch {
	case u.Scheme == "http" && !c.Insecure:
		return &Error{Failed, fmt.Sprintf("%s is plain http; give https, or say insecure: Accept", u.Redacted())}
	case u.Scheme != "http" && u.Scheme != "https":
		return &Error{NotAllowed, fmt.Sprintf("%s: scheme %q; allowed: https", u.Redacted(), u.Scheme)}
	case u.User != nil:
		return &Error{NotAllowed, fmt.Sprintf("%s has a user; name none in a URL", u.Redacted())}
	}
	host, port := strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if slices.ContainsFunc(c.Allowed, func(entry string) bool {
		h, p := split(entry)
		below, wild := strings.CutPrefix(h, "*")
		return p == port && (h == host || wild && strings.HasSuffix(host, below) && len(host) > len(below))
	}) {
		return nil
	}
	return &Error{NotAllowed, fmt.Sprintf("%s: host %s is not allowed; an administrator allows it in functions.allow of the operator's chart", u.Redacted(), net.JoinHostPort(host, port))}
}

// guard asks only what is permitted, for every request: the first, and those that a redirect or a registry's challenge
// leads to.
type guard struct {
	c *Client
	t *http.Transport
}

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.c.permits(req.URL); err != nil {
		return nil, err
	}
	return g.t.RoundTrip(req)
}

// transport uses no proxy: which address is reached would be decided there.
func (c *Client) transport() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			d := net.Dialer{Timeout: dialTimeout, Control: func(_, to string, _ syscall.RawConn) error { return reachable(address, to) }}
			return d.DialContext(ctx, network, address)
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots},
		TLSHandshakeTimeout:    dialTimeout,
		ResponseHeaderTimeout:  answerTimeout,
		MaxResponseHeaderBytes: maxHeader,
		MaxConnsPerHost:        2,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
}

// clouds are addresses outside of the link-local ranges where a cloud tells a machine its secrets.
var clouds = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("192.0.0.192"),
}

var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// reachable refuses an address, to, that a name was resolved to, and that is the node's own, its neighbours' or its
// cloud's. It is asked for the address that is connected to, so that a name cannot have another one when it is used. An
// address that was asked for by number is in the list of what is allowed.
func reachable(asked, to string) error {
	at, err := netip.ParseAddrPort(to)
	if err != nil {
		return err
	}
	ip := at.Addr().WithZone("").Unmap()
	if host, _, err := net.SplitHostPort(asked); err == nil {
		if _, err := netip.ParseAddr(host); err == nil {
			return nil
		}
	}
	if nat64.Contains(ip) {
		b := ip.As16()
		ip = netip.AddrFrom4([4]byte(b[12:]))
	}
	if ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() || slices.Contains(clouds, ip) {
		return &Error{NotAllowed, fmt.Sprintf("%s is at %s, an address of the operator's node or of its cloud; nothing is fetched there", asked, ip)}
	}
	return nil
}
