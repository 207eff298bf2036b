package networkpolicy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/netpol"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

func build(c client.WithWatch, run kube.Runner) plugintest.Build {
	return func(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams) *cobra.Command {
		return (&Options{access: access, flags: flags, streams: streams, clock: clock.RealClock{}, client: c, run: run}).command()
	}
}

func apiServerObjects() []client.Object {
	return []client.Object{
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
			Spec:       corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.1"}, Ports: []corev1.ServicePort{{Port: 443}}},
		},
		&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.168.0.3"}}, {Addresses: []string{"192.168.0.2"}}},
			Ports:       []discoveryv1.EndpointPort{{Port: ptr.To[int32](6443)}},
		},
	}
}

func TestPrinted(t *testing.T) {
	for golden, tt := range map[string]struct {
		change func(*v1alpha1.ValkeyCluster)
		args   []string
	}{
		"plain.yaml":    {nil, []string{"demo"}},
		"names.txt":     {nil, []string{"demo", "--egress", "--default-deny", "--manager", "-o", "name"}},
		"list.json":     {nil, []string{"demo", "--default-deny", "-o", "json"}},
		"manager.yaml":  {nil, []string{"--manager"}},
		"manager2.yaml": {nil, []string{"--manager", "--api-server", "10.0.0.1:443", "--cluster-namespaces", "team=a", "--manager-namespace", "platform"}},
		"dns.yaml":      {nil, []string{"demo", "--egress", "--manager", "--dns-port", "53,5353"}},
		"clients.yaml":  {nil, []string{"demo", "--client-selector", "app=web", "--client-selector", "app=job", "--client-namespace", "team-b", "--client-cidr", "10.9.0.0/16"}},
		"missing.yaml":  {nil, []string{"other"}},
		"tls.yaml":      {func(c *v1alpha1.ValkeyCluster) { c.Spec.TLS = &v1alpha1.TLS{SecretRef: "x"} }, []string{"demo"}},
		"tls-kubelet.yaml": {
			func(c *v1alpha1.ValkeyCluster) { c.Spec.TLS = &v1alpha1.TLS{SecretRef: "x"} }, []string{"demo", "--kubelet-cidr", "192.168.0.0/24"},
		},
		"external-off.yaml": {nil, []string{"demo", "--external-cidr", "203.0.113.0/24"}},
		"external-cluster.yaml": {
			func(c *v1alpha1.ValkeyCluster) { c.Spec.ExternalAccess = &v1alpha1.ExternalAccess{Enabled: true} },
			[]string{"demo", "--external-cidr", "203.0.113.0/24"},
		},
		"external-local.yaml": {
			func(c *v1alpha1.ValkeyCluster) {
				c.Spec.ExternalAccess = &v1alpha1.ExternalAccess{Enabled: true, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal}
			},
			[]string{"demo", "--external-cidr", "203.0.113.0/24"},
		},
		"external-forgotten.yaml": {
			func(c *v1alpha1.ValkeyCluster) { c.Spec.ExternalAccess = &v1alpha1.ExternalAccess{Enabled: true} }, []string{"demo"},
		},
	} {
		f := plugintest.Active("demo", 1, 1)
		if tt.change != nil {
			tt.change(f.Cluster)
		}
		c := plugintest.Client(append(f.Objects(), apiServerObjects()...)...)
		out, errOut, code := plugintest.Run(t, build(c, nil), false, tt.args...)
		if code != exit.OK {
			t.Errorf("%s: exit %d with %q", golden, code, errOut)
		}
		plugintest.Golden(t, golden, out+"# stderr\n"+errOut)
	}
}

func TestWrongUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"--manager for the manager's policy alone": nil,
		"takes the name of one cluster":            {"a", "b"},
		"--apply, --diff and --test are different": {"demo", "--apply", "--diff"},
		"--dry-run needs --apply":                  {"demo", "--dry-run=server"},
		"--external-cidr: \"10.0.0.1\" is an":      {"demo", "--external-cidr", "10.0.0.1"},
		"is no label selector":                     {"demo", "--client-selector", "=="},
		"--client-namespace: \"a b\" is neither":   {"demo", "--client-namespace", "a b"},
		"--client-cidr: \"x\" is":                  {"demo", "--client-cidr", "x"},
		"--api-server: \"x\" is no address":        {"--manager", "--api-server", "x"},
		"--dns-port: 70000 is no port":             {"demo", "--egress", "--dns-port", "70000"},
		"give --egress or --manager too":           {"demo", "--dns-port", "5353"},
		"give --manager too":                       {"demo", "--api-server", "10.0.0.1:443"},
		"--egress is about a cluster: name one":    {"--manager", "--egress"},
		"--test needs the name of a cluster":       {"--manager", "--test"},
		"--timeout needs --test":                   {"demo", "--timeout", "1s"},
		"--manager-namespace: \"A\" is no name of": {"--manager", "--manager-namespace", "A"},
		"--output \"xml\" is not known":            {"demo", "-o", "xml"},
		"--diff prints a diff only":                {"demo", "--diff", "-o", "json"},
		"--dry-run \"x\" is not known":             {"demo", "--apply", "--dry-run=x"},
	} {
		_, errOut, code := plugintest.Run(t, build(plugintest.Client(), nil), false, args...)
		if code != exit.Usage || !strings.Contains(errOut, want) {
			t.Errorf("%v: exit %d with %q, want %q", args, code, errOut, want)
		}
	}
}

func policies(t *testing.T, c client.Client) map[string]networkingv1.NetworkPolicy {
	t.Helper()
	var list networkingv1.NetworkPolicyList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	out := map[string]networkingv1.NetworkPolicy{}
	for _, p := range list.Items {
		out[p.Namespace+"/"+p.Name] = p
	}
	return out
}

func TestApplyAndDiff(t *testing.T) {
	c := plugintest.Client(append(plugintest.Active("demo", 1, 1).Objects(), apiServerObjects()...)...)
	step := func(code int, golden string, args ...string) {
		t.Helper()
		out, errOut, got := plugintest.Run(t, build(c, nil), false, append([]string{"demo"}, args...)...)
		if got != code {
			t.Errorf("%v: exit %d, want %d", args, got, code)
		}
		plugintest.Golden(t, golden, out+"# stderr\n"+errOut)
	}
	step(1, "diff-all.txt", "--diff")
	step(0, "apply-dry-client.txt", "--apply", "--dry-run=client")
	step(0, "apply-dry-server.txt", "--apply", "--dry-run=server")
	if n := len(policies(t, c)); n != 0 {
		t.Fatalf("%d policies exist after dry runs", n)
	}
	step(0, "apply.txt", "--apply", "--manager")
	if got := policies(t, c); len(got) != 2 || got["team-a/demo-valkey"].Name == "" || got["valkey-operator/valkey-operator"].Name == "" {
		t.Errorf("applied: %v", got)
	}
	step(0, "apply-again.txt", "--apply", "--manager")
	step(0, "diff-none.txt", "--diff")
	step(1, "diff-egress.txt", "--diff", "--egress")
	step(0, "apply-egress.txt", "--apply", "--egress")
	if got := policies(t, c)["team-a/demo-valkey"]; len(got.Spec.Egress) != 2 {
		t.Errorf("after --egress: %+v", got.Spec)
	}
	step(0, "apply.json", "--apply", "-o", "json")
}

// N-06: a policy of somebody else is left alone, and nothing else is written either.
func TestPoliciesOfOthersAreNeverOverwritten(t *testing.T) {
	other := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: plugintest.Namespace, Name: netpol.DefaultDenyName}}
	c := plugintest.Client(append(plugintest.Active("demo", 1, 1).Objects(), other)...)
	for _, mode := range []string{"--apply", "--diff"} {
		_, errOut, code := plugintest.Run(t, build(c, nil), false, "demo", "--default-deny", mode)
		if code != exit.Failed || !strings.Contains(errOut, "valkey-default-deny in namespace team-a was not made by this command") {
			t.Errorf("%s: exit %d with %q", mode, code, errOut)
		}
	}
	if n := len(policies(t, c)); n != 1 {
		t.Errorf("%d policies exist, want the other's alone", n)
	}
}

// network plays pods: what is created runs, and who may connect decides allow.
type network struct {
	client.WithWatch
	mu      sync.Mutex
	made    []corev1.Pod
	refused string
}

func (n *network) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return n.WithWatch.Create(ctx, obj, opts...)
	}
	if pod.Namespace == n.refused {
		return plugintest.Forbidden("create", "pods", pod.Namespace)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	pod.Name = fmt.Sprintf("%s%d", pod.GenerateName, len(n.made))
	pod.Status.Phase = corev1.PodRunning
	n.made = append(n.made, *pod)
	return n.WithWatch.Create(ctx, pod, opts...)
}

// run answers as valkey-cli does.
func (n *network) run(_ context.Context, c kube.Command) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	labels := map[string]string{}
	if i := slices.IndexFunc(n.made, func(p corev1.Pod) bool { return p.Name == c.Pod }); i >= 0 {
		labels = n.made[i].Labels
	}
	host, port := c.Argv[4], c.Argv[6]
	server := c.Container == "valkey"
	admitted := labels["valkey-client"] == "true" && c.Namespace == plugintest.Namespace
	switch {
	case server && host == "kubernetes.default.svc", !server && port == "16379", !server && !admitted && labels["app"] == "":
		return says(c, "", fmt.Sprintf("Could not connect to Valkey at %s:%s: Connection timed out", host, port), 1)
	case port == "16379":
		return says(c, "", "Error: Server closed the connection", 1)
	}
	return says(c, "PONG", "", 0)
}

// says copies both streams at once, as a connection to a pod does: the one that
// carries nothing ends last.
func says(c kube.Command, out, errOut string, code int) error {
	outReader, outWriter := io.Pipe()
	errReader, errWriter := io.Pipe()
	errs := make(chan error, 2)
	copyTo := func(w io.Writer, r io.Reader) {
		_, err := io.Copy(w, r)
		errs <- err
	}
	go copyTo(c.Stdout, outReader)
	go copyTo(c.Stderr, errReader)
	// Both copies are under way before either stream says anything.
	for _, w := range []io.Writer{outWriter, errWriter} {
		if _, err := w.Write(nil); err != nil {
			return err
		}
	}
	for _, one := range []struct {
		w    *io.PipeWriter
		text string
	}{{errWriter, errOut}, {outWriter, out}} {
		if _, err := io.WriteString(one.w, one.text); err != nil {
			return err
		}
		if err := one.w.Close(); err != nil {
			return err
		}
	}
	if err := errors.Join(<-errs, <-errs); err != nil || code == 0 {
		return err
	}
	return utilexec.CodeExitError{Err: fmt.Errorf("exit %d", code), Code: code}
}

func TestTryingOut(t *testing.T) {
	for golden, tt := range map[string]struct {
		refused string
		args    []string
		code    int
	}{
		"test.txt":         {"", nil, 0},
		"test-egress.json": {"", []string{"--egress", "-o", "json"}, 0},
		"test-refused.txt": {"valkey-operator", nil, 0},
	} {
		n := &network{WithWatch: plugintest.Client(plugintest.Active("demo", 1, 1).Objects()...), refused: tt.refused}
		out, errOut, code := plugintest.Run(t, build(n, n.run), false, append([]string{"demo", "--test"}, tt.args...)...)
		if code != tt.code {
			t.Errorf("%s: exit %d with %q", golden, code, errOut)
		}
		plugintest.Golden(t, golden, out+"# stderr\n"+errOut)
		for _, p := range n.made {
			if err := n.Get(t.Context(), client.ObjectKeyFromObject(&p), &corev1.Pod{}); client.IgnoreNotFound(err) != nil || err == nil {
				t.Errorf("%s: probe pod %s in %s is left: %v", golden, p.Name, p.Namespace, err)
			}
			if p.Spec.SecurityContext != nil && p.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy || p.Labels[v1alpha1.LabelInstance] != "" {
				t.Errorf("%s: probe pod %s would be taken for one of the cluster: %v", golden, p.Name, p.Labels)
			}
		}
	}
}
