// Command coredns is CoreDNS with the plugins that the local test cluster's
// Corefile names and no others, which keeps the build and the image small.
package main

import (
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
)

func init() {
	// CoreDNS runs plugins in the order of this list, and knows only those in it.
	dnsserver.Directives = []string{"reload", "ready", "health", "errors", "log", "kubernetes"}
}

func main() {
	coremain.Run()
}
