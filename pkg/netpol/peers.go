package netpol

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// sorted keeps UDP before TCP on one number.
func sorted(ports []Port) []Port {
	slices.SortStableFunc(ports, func(a, b Port) int { return cmp.Compare(a.Number, b.Number) })
	return ports
}

// CIDR checks a range of addresses. An address alone, or bits beyond the prefix,
// would mean something else to different network plugins.
func CIDR(text string) (string, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return "", fmt.Errorf("%q is an address, not a range: write %s", text, netip.PrefixFrom(addr, addr.BitLen()))
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		return "", fmt.Errorf("%q is no range of addresses: write one such as 10.0.0.0/8 or fd00::/8", text)
	}
	if masked := prefix.Masked(); masked != prefix {
		return "", fmt.Errorf("%q has bits beyond its prefix: write %s", text, masked)
	}
	return prefix.String(), nil
}

// PodLabels reads a selector of pods, in kubectl's form. The empty selector is
// every pod.
func PodLabels(text string) (*metav1.LabelSelector, error) {
	selector, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		return nil, fmt.Errorf("%q is no label selector: write one such as valkey-client=true: %w", text, err)
	}
	return selector, nil
}

// Namespaces reads a selector of namespaces: a name alone, or labels in kubectl's
// form. The label that every namespace carries its name in is set by Kubernetes.
func Namespaces(text string) (*metav1.LabelSelector, error) {
	if text != "" && len(validation.IsDNS1123Label(text)) == 0 {
		return named(text), nil
	}
	selector, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		return nil, fmt.Errorf("%q is neither the name of a namespace nor a label selector: write team-b, or labels such as team=b: %w", text, err)
	}
	return selector, nil
}

func named(namespace string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
}

func blocks(cidrs []string) []networkingv1.NetworkPolicyPeer {
	var out []networkingv1.NetworkPolicyPeer
	for _, cidr := range cidrs {
		out = append(out, networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr}})
	}
	return out
}

// Client is a kind of application: pods by their labels, of the cluster's own
// namespace or, with Namespaces, of those that it selects; or, with CIDR alone,
// addresses.
type Client struct {
	Pods       *metav1.LabelSelector
	Namespaces *metav1.LabelSelector
	CIDR       string
}

// peer keeps both selectors in one peer: as two, each would admit by itself.
func (c Client) peer() networkingv1.NetworkPolicyPeer {
	if c.CIDR != "" {
		return networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: c.CIDR}}
	}
	return networkingv1.NetworkPolicyPeer{PodSelector: c.Pods, NamespaceSelector: c.Namespaces}
}

// ManagerAt is where the manager runs.
type ManagerAt struct {
	Namespace string
	Labels    map[string]string
}

// DefaultManager is where the manifests put it.
func DefaultManager() ManagerAt {
	return ManagerAt{Namespace: "valkey-operator", Labels: map[string]string{"app": "valkey-operator"}}
}

func (m ManagerAt) peer() networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{NamespaceSelector: named(m.Namespace), PodSelector: &metav1.LabelSelector{MatchLabels: m.Labels}}
}
