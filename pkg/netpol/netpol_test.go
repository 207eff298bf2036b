package netpol

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func pods(labels ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		s.MatchLabels[k] = v
	}
	return s
}

func cluster(change func(*Cluster)) Cluster {
	c := Cluster{Namespace: "my-app", Name: "demo", Clients: []Client{{Pods: pods("valkey-client=true")}}, Manager: DefaultManager()}
	if change != nil {
		change(&c)
	}
	return c
}

// stream is a list of policies as it is printed.
func stream(t *testing.T, policies ...*networkingv1.NetworkPolicy) string {
	t.Helper()
	var out []string
	for _, p := range policies {
		text, err := yaml.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	return strings.Join(out, "---\n")
}

// S0-64 to S0-68, S0-72, S0-73, N-01: the policies as people read them. The files of
// testdata are the expectation; they are written by hand.
func TestPoliciesAreExactlyThese(t *testing.T) {
	for name, policies := range map[string][]*networkingv1.NetworkPolicy{
		"ingress.yaml": cluster(nil).Policies(),
		"egress.yaml":  cluster(func(c *Cluster) { c.Egress = true }).Policies(),
		"default-deny.yaml": cluster(func(c *Cluster) {
			c.Egress, c.DefaultDeny = true, true
			c.Clients = append(c.Clients, Client{Pods: pods("app=worker")}, Client{CIDR: "10.9.0.0/16"})
		}).Policies(),
		"peers.yaml": cluster(func(c *Cluster) {
			c.TLS = true
			c.Clients = []Client{{Pods: pods("app=web"), Namespaces: named("team-b")}, {CIDR: "10.9.0.0/16"}}
			c.ExternalCIDRs = []string{"203.0.113.0/24", "2001:db8::/32"}
			c.KubeletCIDRs = []string{"192.168.0.0/24"}
		}).Policies(),
		"manager.yaml": {ManagerPolicy{ManagerAt: DefaultManager(), APIServer: []Endpoint{
			{CIDR: "10.96.0.1/32", Port: 443}, {CIDR: "192.168.0.2/32", Port: 6443}, {CIDR: "192.168.0.3/32", Port: 6443},
		}}.Policy()},
		"manager-somewhere.yaml": {ManagerPolicy{
			ManagerAt:         ManagerAt{Namespace: "platform", Labels: map[string]string{"app": "valkey-operator"}},
			ClusterNamespaces: pods("valkey=yes"),
		}.Policy()},
	} {
		want, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), stream(t, policies...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// N-01: TLS changes no rule but the one for probes that was asked for.
func TestTLSChangesNothingByItself(t *testing.T) {
	plain, tls := cluster(nil), cluster(func(c *Cluster) { c.TLS = true })
	if diff := cmp.Diff(plain.Policies(), tls.Policies()); diff != "" {
		t.Errorf("with TLS (-without +with):\n%s", diff)
	}
	probed := cluster(func(c *Cluster) { c.KubeletCIDRs = []string{"192.168.0.0/24"} })
	if diff := cmp.Diff(plain.Policies(), probed.Policies()); diff != "" {
		t.Errorf("on a plaintext cluster, whose probe uses no network (-without +with):\n%s", diff)
	}
}

// N-01, S0-66: a rule without peers would admit everybody, and a manager in two
// peers every pod of its namespace.
func TestNoRuleAdmitsEverybody(t *testing.T) {
	for name, c := range map[string]Cluster{
		"no client at all": cluster(func(c *Cluster) { c.Clients = nil }),
		"everything": cluster(func(c *Cluster) {
			c.TLS, c.Egress, c.ExternalCIDRs, c.KubeletCIDRs = true, true, []string{"203.0.113.0/24"}, []string{"192.168.0.0/24"}
		}),
	} {
		for i, rule := range c.servers().Spec.Ingress {
			if len(rule.From) == 0 || len(rule.Ports) == 0 {
				t.Errorf("%s: rule %d is %+v", name, i, rule)
			}
			for _, peer := range rule.From {
				if peer.NamespaceSelector != nil && peer.PodSelector == nil {
					t.Errorf("%s: rule %d admits every pod of other namespaces: %+v", name, i, peer)
				}
			}
		}
	}
}

func TestRangesOfAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.0/8": "10.0.0.0/8", "fd00::/8": "fd00::/8", "0.0.0.0/0": "0.0.0.0/0",
		"10.1.2.3":    `"10.1.2.3" is an address, not a range: write 10.1.2.3/32`,
		"fd00::1":     `"fd00::1" is an address, not a range: write fd00::1/128`,
		"10.1.0.0/8":  `"10.1.0.0/8" has bits beyond its prefix: write 10.0.0.0/8`,
		"office":      `"office" is no range of addresses: write one such as 10.0.0.0/8 or fd00::/8`,
		"10.0.0.0/33": `"10.0.0.0/33" is no range of addresses: write one such as 10.0.0.0/8 or fd00::/8`,
	} {
		got, err := CIDR(text)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestSelectorsOfNamespacesAreNamesOrLabels(t *testing.T) {
	for text, want := range map[string]*metav1.LabelSelector{
		"team-b":       {MatchLabels: map[string]string{"kubernetes.io/metadata.name": "team-b"}},
		"team=b,env=x": {MatchLabels: map[string]string{"team": "b", "env": "x"}},
		"":             {},
	} {
		got, err := Namespaces(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if metav1.FormatLabelSelector(got) != metav1.FormatLabelSelector(want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if _, err := Namespaces("a b"); err == nil || !strings.Contains(err.Error(), "team-b") {
		t.Errorf("error = %v, want one with an example", err)
	}
	if _, err := PodLabels("=="); err == nil || !strings.Contains(err.Error(), "valkey-client=true") {
		t.Errorf("error = %v, want one with an example", err)
	}
}

// S0-01: the page lists the connections that the policies are made from, no more
// and no fewer.
func TestThePageListsTheMatrix(t *testing.T) {
	page, err := os.ReadFile("../../docs/network.md")
	if err != nil {
		t.Fatal(err)
	}
	parties := map[Party]string{
		Clients: "clients", Valkey: "Valkey pod", Manager: "manager", Kubelet: "kubelet", APIServer: "API server", DNS: "cluster DNS",
	}
	row := regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|`)
	found := row.FindAllStringSubmatch(string(page), -1)
	text := map[int][]string{}
	for _, m := range found {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		text[n] = m[2:]
	}
	rows := map[int]bool{}
	for _, c := range Matrix {
		rows[c.Row] = true
		cells := text[c.Row]
		if cells == nil {
			t.Errorf("the page has no row %d", c.Row)
			continue
		}
		if !strings.Contains(cells[0], parties[c.From]) {
			t.Errorf("row %d begins at %q, want %s", c.Row, cells[0], parties[c.From])
		}
		if to := parties[c.To]; !strings.Contains(cells[1], to) && c.Row != 3 { // "its primary"
			t.Errorf("row %d ends at %q, want %s", c.Row, cells[1], to)
		}
		for _, p := range c.Ports {
			if !strings.Contains(cells[2], string(p.Protocol)) || !strings.HasSuffix(cells[2], " "+strconv.Itoa(int(p.Number))) {
				t.Errorf("row %d has ports %q, want %s %d", c.Row, cells[2], p.Protocol, p.Number)
			}
		}
		if c.TLSOnly != strings.Contains(cells[1], "TLS clusters") {
			t.Errorf("row %d: for TLS clusters only is %v, the page says %q", c.Row, c.TLSOnly, cells[1])
		}
	}
	// Beyond what policies tell apart: the plugin's, which goes through the API server.
	if beyond := []int{8}; len(text) != len(rows)+len(beyond) {
		t.Errorf("the page has %d rows, the matrix %d and %v beyond", len(text), len(rows), beyond)
	}
}

// Every flow that can be tried out is decided by the policies as its entry says.
func TestFlowsAreWhatThePoliciesDecide(t *testing.T) {
	changes := map[string]func(*Cluster){
		"as it is":        nil,
		"TLS":             func(c *Cluster) { c.TLS = true },
		"egress":          func(c *Cluster) { c.Egress = true },
		"default-deny":    func(c *Cluster) { c.Egress, c.DefaultDeny = true, true },
		"everybody here":  func(c *Cluster) { c.Clients = []Client{{Pods: &metav1.LabelSelector{}}} },
		"other namespace": func(c *Cluster) { c.Clients = []Client{{Pods: pods("app=web"), Namespaces: named("team-b")}} },
		"addresses":       func(c *Cluster) { c.ExternalCIDRs = []string{"203.0.113.0/24"} },
		"no client":       func(c *Cluster) { c.Clients = nil },
	}
	for name, change := range changes {
		c := cluster(change)
		flows := c.Flows()
		for _, f := range flows {
			if got := decide(c, f); got != f.Allowed {
				t.Errorf("%s: %s to %s %d is allowed: %v, the flow says %v", name, f.From, f.To, f.Port, got, f.Allowed)
			}
		}
		if !slices.ContainsFunc(flows, func(f Flow) bool { return f.Allowed }) || !slices.ContainsFunc(flows, func(f Flow) bool { return !f.Allowed }) {
			t.Errorf("%s: nothing is allowed, or nothing denied: %v", name, flows)
		}
	}
}

// decide evaluates the cluster's policies as Kubernetes defines them, for a flow
// between pods.
func decide(c Cluster, f Flow) bool {
	own := map[string]string{"app.kubernetes.io/name": "valkey", "app.kubernetes.io/instance": c.Name}
	from := map[Source]pod{
		FromClient: {c.Namespace, c.ClientLabels()}, FromStranger: {c.Namespace, map[string]string{"x": "y"}},
		FromManager:   {c.Manager.Namespace, c.Manager.Labels},
		FromNeighbour: {c.Manager.Namespace, c.ClientLabels()}, FromServer: {c.Namespace, own},
	}[f.From]
	to := map[Target]pod{ToServer: {c.Namespace, own}, ToDNS: {"kube-system", nil}, ToAPIServer: {}}[f.To]
	port := f.Port
	if f.To == ToDNS {
		port = 53
	}
	in, isolatedIn, out, isolatedOut := false, false, false, false
	for _, p := range c.Policies() {
		// What default-deny adds for the pods of others is not in question.
		if to.is(p) && slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			isolatedIn = true
			for _, r := range p.Spec.Ingress {
				in = in || from.among(p.Namespace, r.From) && on(r.Ports, port)
			}
		}
		if from.is(p) && slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
			isolatedOut = true
			for _, r := range p.Spec.Egress {
				out = out || to.among(p.Namespace, r.To) && on(r.Ports, port)
			}
		}
	}
	return (in || !isolatedIn) && (out || !isolatedOut)
}

type pod struct {
	namespace string
	labels    map[string]string
}

func (p pod) is(policy *networkingv1.NetworkPolicy) bool {
	return p.namespace == policy.Namespace && p.matches(&policy.Spec.PodSelector)
}

func (p pod) matches(s *metav1.LabelSelector) bool { return has(p.labels, s) }

func has(labels map[string]string, s *metav1.LabelSelector) bool {
	for k, v := range s.MatchLabels {
		if labels[k] != v {
			return false
		}
	}
	return true
}

func (p pod) among(namespace string, peers []networkingv1.NetworkPolicyPeer) bool {
	for _, peer := range peers {
		inNamespace := p.namespace == namespace
		if peer.NamespaceSelector != nil {
			inNamespace = has(map[string]string{corev1.LabelMetadataName: p.namespace}, peer.NamespaceSelector)
		}
		if peer.IPBlock == nil && inNamespace && (peer.PodSelector == nil || p.matches(peer.PodSelector)) {
			return true
		}
	}
	return len(peers) == 0
}

func on(ports []networkingv1.NetworkPolicyPort, number int32) bool {
	return slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.IntVal == number })
}
