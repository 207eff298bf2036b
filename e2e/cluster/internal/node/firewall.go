package node

import (
	"fmt"
	"net/netip"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
)

// firewall renders two nftables rules that make the node behave like the
// clusters that people have.
//
// Most network plug-ins drop what a NetworkPolicy denies. kube-router rejects
// it, and a rejected client can't be told from one whose server is down. The
// rejection is an ICMP message that carries the head of the denied packet; the
// first rule drops those messages whose packet was for a pod. It looks at the
// destination in the inner IP header, which begins 28 bytes after the outer
// one (20 of IP, 8 of ICMP) and holds the destination at byte 16; it does so
// before connection tracking can rewrite it.
//
// kube-router also accepts packets before kube-proxy can reject those for a
// Service without endpoints, which then get lost. A packet that is forwarded to
// a Service's address has met no endpoint; the second rule rejects it.
func firewall() (string, error) {
	pods, err := netip.ParsePrefix(layout.PodCIDR)
	if err != nil {
		return "", fmt.Errorf("parse the pod network: %w", err)
	}
	const bits = (20 + 8 + 16) * 8
	network := pods.Masked().Addr().As4()
	return fmt.Sprintf(`table ip kubectl-valkey {
	chain output {
		type filter hook output priority raw;
		icmp type destination-unreachable icmp code port-unreachable @nh,%d,%d 0x%x drop
	}
	chain forward {
		type filter hook forward priority filter - 1;
		ip daddr %s reject with icmp type port-unreachable
	}
}
`, bits, pods.Bits(), network[:pods.Bits()/8], layout.ServiceCIDR), nil
}
