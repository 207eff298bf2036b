package networkpolicy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/netpol"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
)

// wish is what the flags say about the policies.
type wish struct {
	clientSelectors   []string
	clientNamespaces  []string
	clientCIDRs       []string
	externalCIDRs     []string
	kubeletCIDRs      []string
	egress            bool
	defaultDeny       bool
	manager           bool
	managerNamespace  string
	clusterNamespaces string
	apiServers        []string
	dnsPorts          []int32

	clients    []netpol.Client
	namespaces *metav1.LabelSelector
	endpoints  []netpol.Endpoint
}

func (w *wish) addFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&w.clientSelectors, "client-selector", nil, "Labels of client pods, as in kubectl get -l; an empty one means every pod. Default: "+defaultClient+", unless --client-namespace or --client-cidr says who else.")
	fs.StringArrayVar(&w.clientNamespaces, "client-namespace", nil, "Namespaces of client pods, by name or by labels such as team=b. Default: the cluster's own.")
	fs.StringArrayVar(&w.clientCIDRs, "client-cidr", nil, "Addresses of clients that are no pods of this Kubernetes, such as 10.9.0.0/16.")
	fs.StringArrayVar(&w.externalCIDRs, "external-cidr", nil, "Source addresses of external access, as the pods see them.")
	fs.StringArrayVar(&w.kubeletCIDRs, "kubelet-cidr", nil, "Addresses of Kubernetes nodes, where the network plugin doesn't exempt the kubelet's probes; for TLS clusters.")
	fs.Int32SliceVar(&w.dnsPorts, "dns-port", nil, "Ports of resolvers beside 53, where their pods listen elsewhere, such as 5353 on OpenShift.")
	fs.BoolVar(&w.egress, "egress", false, "If true, also restrict where the cluster's pods connect to.")
	fs.BoolVar(&w.defaultDeny, "default-deny", false, "If true, also close the namespace to all that no policy allows.")
	fs.BoolVar(&w.manager, "manager", false, "If true, also make the policy for the manager's pods.")
	fs.StringVar(&w.managerNamespace, "manager-namespace", kube.ManagerNamespace, "Namespace of the manager.")
	fs.StringVar(&w.clusterNamespaces, "cluster-namespaces", "", "With --manager: namespaces that may hold clusters, by name or labels. Default: all.")
	fs.StringArrayVar(&w.apiServers, "api-server", nil, "With --manager: where the API server answers, such as 10.96.0.1:443. Default: what the Service kubernetes leads to.")
}

// parse checks the flags about policies.
func (w *wish) parse(fs *pflag.FlagSet, cluster bool) error {
	var errs []error
	fail := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	w.parseClients(fail)
	for flag, cidrs := range map[string][]string{"external-cidr": w.externalCIDRs, "kubelet-cidr": w.kubeletCIDRs} {
		for _, cidr := range cidrs {
			_, err := netpol.CIDR(cidr)
			fail(flag, err)
		}
	}
	if problems := validation.IsDNS1123Label(w.managerNamespace); len(problems) > 0 {
		fail("manager-namespace", fmt.Errorf("%q is no name of a namespace: %s", w.managerNamespace, problems[0]))
	}
	if fs.Changed("cluster-namespaces") {
		var err error
		w.namespaces, err = netpol.Namespaces(w.clusterNamespaces)
		fail("cluster-namespaces", err)
	}
	for _, text := range w.apiServers {
		at, err := netip.ParseAddrPort(text)
		if err != nil {
			fail("api-server", fmt.Errorf("%q is no address with a port: write one such as 10.96.0.1:443", text))
			continue
		}
		w.endpoints = append(w.endpoints, endpoint(at))
	}
	for _, port := range w.dnsPorts {
		if problems := validation.IsValidPortNum(int(port)); len(problems) > 0 {
			fail("dns-port", fmt.Errorf("%d is no port: %s", port, problems[0]))
		}
	}
	if len(w.dnsPorts) > 0 && !w.egress && !w.manager {
		errs = append(errs, errors.New("--dns-port is about where pods connect to: give --egress or --manager too"))
	}
	if !w.manager && (fs.Changed("cluster-namespaces") || len(w.apiServers) > 0) {
		errs = append(errs, errors.New("--cluster-namespaces and --api-server are about the manager's policy: give --manager too"))
	}
	for _, flag := range []string{"client-selector", "client-namespace", "client-cidr", "external-cidr", "kubelet-cidr", "egress", "default-deny"} {
		if !cluster && fs.Changed(flag) {
			errs = append(errs, fmt.Errorf("--%s is about a cluster: name one", flag))
		}
	}
	return errors.Join(errs...)
}

func endpoint(at netip.AddrPort) netpol.Endpoint {
	addr := at.Addr().Unmap()
	return netpol.Endpoint{CIDR: netip.PrefixFrom(addr, addr.BitLen()).String(), Port: int32(at.Port())}
}

func (w *wish) parseClients(fail func(flag string, err error)) {
	selectors := w.clientSelectors
	if len(selectors) == 0 && len(w.clientNamespaces) > 0 {
		selectors = []string{""}
	}
	if len(selectors) == 0 && len(w.clientCIDRs) == 0 {
		selectors = []string{defaultClient}
	}
	var namespaces []*metav1.LabelSelector
	for _, text := range w.clientNamespaces {
		s, err := netpol.Namespaces(text)
		fail("client-namespace", err)
		namespaces = append(namespaces, s)
	}
	if len(namespaces) == 0 {
		namespaces = []*metav1.LabelSelector{nil}
	}
	for _, text := range selectors {
		pods, err := netpol.PodLabels(text)
		fail("client-selector", err)
		for _, where := range namespaces {
			w.clients = append(w.clients, netpol.Client{Pods: pods, Namespaces: where})
		}
	}
	for _, text := range w.clientCIDRs {
		cidr, err := netpol.CIDR(text)
		fail("client-cidr", err)
		w.clients = append(w.clients, netpol.Client{CIDR: cidr})
	}
}

// cluster is what the policies of the cluster depend on. Whether it has TLS is
// looked up; if that can't be, both kinds of cluster are served.
func (o *Options) cluster(ctx context.Context) (netpol.Cluster, error) {
	c := netpol.Cluster{
		Namespace: o.namespace, Name: o.name, TLS: true, Clients: o.want.clients,
		ExternalCIDRs: o.want.externalCIDRs, KubeletCIDRs: o.want.kubeletCIDRs,
		Manager: o.at(), Egress: o.want.egress, DefaultDeny: o.want.defaultDeny, DNSPorts: o.want.dnsPorts,
	}
	if o.name == "" {
		return c, nil
	}
	var found v1alpha1.ValkeyCluster
	err := kube.Get(ctx, o.client, client.ObjectKey{Namespace: o.namespace, Name: o.name}, &found, "valkeyclusters")
	switch {
	case apierrors.IsNotFound(err) && !kube.NotInstalled(err):
		if o.test {
			return c, fmt.Errorf("cluster %q does not exist in namespace %s: there is nothing to test", o.name, o.namespace)
		}
		return c, o.note("cluster %q does not exist in namespace %s yet", o.name, o.namespace)
	case ctx.Err() != nil:
		return c, ctx.Err()
	case err != nil && o.test:
		return c, err
	case err != nil:
		return c, o.note("the cluster was not looked at: %v", err)
	}
	c.TLS = found.Spec.TLS != nil
	return c, o.warn(&found)
}

// warn says what policies can't help with.
func (o *Options) warn(c *v1alpha1.ValkeyCluster) error {
	if c.Spec.TLS != nil && len(o.want.kubeletCIDRs) == 0 {
		if err := o.note("the kubelet probes port 6379 of this TLS cluster from outside any pod; most network plugins exempt it. Check that pods keep running, or name the addresses of the Kubernetes nodes with --kubelet-cidr"); err != nil {
			return err
		}
	}
	if c.Spec.TLS == nil && len(o.want.kubeletCIDRs) > 0 {
		if err := o.note("--kubelet-cidr has no effect: a cluster without TLS is probed inside its pods"); err != nil {
			return err
		}
	}
	external := c.Spec.ExternalAccess
	switch on := external != nil && external.Enabled; {
	case len(o.want.externalCIDRs) == 0 && on:
		return o.note("the cluster has external access, and nothing is admitted from outside: name the addresses with --external-cidr")
	case len(o.want.externalCIDRs) == 0:
		return nil
	case !on:
		return o.note("the cluster has no external access (spec.externalAccess.enabled): clients at those addresses are admitted, but redirected to addresses inside Kubernetes")
	case external.Gateway != nil:
		return o.note("through a Gateway the pods see the addresses of its proxies, not those of clients: --external-cidr has to name the proxies'")
	case external.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal:
		return o.note("source addresses are not preserved: externalTrafficPolicy is Cluster, so the pods see addresses of Kubernetes nodes for connections that arrive at another node. Set spec.externalAccess.externalTrafficPolicy to Local, or name the addresses of the nodes too")
	}
	return nil
}

// managerPolicy is what the manager's policy depends on; the API server's addresses
// are looked up unless they were given.
func (o *Options) managerPolicy(ctx context.Context) (netpol.ManagerPolicy, error) {
	m := netpol.ManagerPolicy{ManagerAt: o.at(), ClusterNamespaces: o.want.namespaces, APIServer: o.want.endpoints, DNSPorts: o.want.dnsPorts}
	if len(m.APIServer) > 0 {
		return m, nil
	}
	found, err := o.apiServer(ctx)
	if ctx.Err() != nil {
		return m, ctx.Err()
	}
	if err != nil {
		m.APIServer = netpol.AnyAPIServer()
		return m, o.note("the manager may connect to ports 443 and 6443 anywhere, as the API server's addresses are not known (%v); name them with --api-server", err)
	}
	m.APIServer = found
	return m, nil
}

// apiServer reads the addresses of the Service kubernetes and what it leads to.
func (o *Options) apiServer(ctx context.Context) ([]netpol.Endpoint, error) {
	var service corev1.Service
	if err := kube.Get(ctx, o.client, client.ObjectKey{Namespace: "default", Name: "kubernetes"}, &service, "services"); err != nil {
		return nil, err
	}
	var all []netpol.Endpoint
	add := func(address string, port int32) {
		if addr, err := netip.ParseAddr(address); err == nil && port > 0 {
			all = append(all, endpoint(netip.AddrPortFrom(addr, uint16(port))))
		}
	}
	for _, port := range service.Spec.Ports {
		for _, ip := range service.Spec.ClusterIPs {
			add(ip, port.Port)
		}
	}
	var slicesOf discoveryv1.EndpointSliceList
	err := kube.List(ctx, o.client, &slicesOf, "endpointslices", client.InNamespace("default"), client.MatchingLabels{discoveryv1.LabelServiceName: "kubernetes"})
	if err != nil {
		return nil, err
	}
	var behind []netip.AddrPort
	for _, slice := range slicesOf.Items {
		for _, e := range slice.Endpoints {
			for _, port := range slice.Ports {
				for _, address := range e.Addresses {
					if addr, err := netip.ParseAddr(address); err == nil && port.Port != nil {
						behind = append(behind, netip.AddrPortFrom(addr, uint16(*port.Port)))
					}
				}
			}
		}
	}
	if len(behind) == 0 {
		return nil, errors.New("the Service kubernetes in namespace default leads nowhere")
	}
	slices.SortFunc(behind, netip.AddrPort.Compare)
	for _, at := range slices.Compact(behind) {
		all = append(all, endpoint(at))
	}
	return all, nil
}
