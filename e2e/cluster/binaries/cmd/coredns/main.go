// Command coredns is CoreDNS with only the plugins a cluster's own DNS needs,
// which makes it a fraction of the stock binary to compile and to load.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bufsize"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
)

// The order is the order in which a query passes the plugins, as in stock CoreDNS.
func init() {
	dnsserver.Directives = []string{
		"reload", "bufsize", "health", "ready", "prometheus", "errors", "log", "cache", "kubernetes", "forward",
	}
}

func main() { coremain.Run() }
