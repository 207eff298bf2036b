package create

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// invocation is one run of the command in namespace team-a.
type invocation struct {
	client   client.WithWatch
	stdin    string
	terminal bool
	clock    clock.WithTicker
	// outcome
	out, errOut *plugintest.Stream
	code        int
}

func (i *invocation) run(ctx context.Context, args ...string) *invocation {
	streams, o, e := plugintest.Streams(strings.NewReader(i.stdin), i.terminal)
	i.out, i.errOut = o, e
	if i.clock == nil {
		i.clock = clocktesting.NewFakeClock(plugintest.Now)
	}
	access, flags := kube.NewAccess(), output.NewFlags(func(string) string { return "" })
	cmd := (&Options{access: access, flags: flags, streams: streams, clock: i.clock, client: i.client}).command()
	access.AddFlags(cmd.PersistentFlags())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(args, "--namespace", plugintest.Namespace))
	i.code = exit.Report(e, cmd.ExecuteContext(ctx))
	return i
}

// menu is a namespace with all that a cluster can refer to.
func menu(more ...client.Object) []client.Object {
	return append(append(plugintest.Menu(), more...),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: plugintest.Namespace}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node1", Labels: map[string]string{corev1.LabelTopologyZone: "a"}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node2", Labels: map[string]string{corev1.LabelTopologyZone: "b"}}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}},
	)
}

func demo(args ...string) []string {
	return append([]string{"demo", "--config", "standard", "--shards", "3", "--replicas", "1"}, args...)
}

func created(t *testing.T, c client.Client) bool {
	t.Helper()
	err := c.Get(t.Context(), client.ObjectKey{Namespace: plugintest.Namespace, Name: "demo"}, &v1alpha1.ValkeyCluster{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

func TestCreate(t *testing.T) {
	plugintest.Kubeconfig(t)
	tests := []struct {
		name   string
		args   []string
		golden string
		stored bool
	}{
		{"a plain one", demo(), "created.txt", true},
		{"as a name", demo("-o", "name"), "created.name.txt", true},
		{"as YAML", demo("-o", "yaml", "--zones", "a,b"), "created.yaml", true},
		{"as JSON, not stored", demo("-o", "json", "--dry-run=server"), "dry-run-server.json", false},
		{"server dry run", demo("--dry-run", "server"), "dry-run-server.txt", false},
		{"client dry run", demo("--dry-run=client", "--tls-secret", "unchecked"), "dry-run-client.yaml", false},
		{"client dry run as a name", demo("--dry-run=client", "-o", "name"), "dry-run-client.name.txt", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := plugintest.Client(menu()...)
			i := (&invocation{client: c}).run(t.Context(), tt.args...)
			if i.code != exit.OK || i.errOut.String() != "" {
				t.Fatalf("exit %d with %q", i.code, i.errOut)
			}
			plugintest.Golden(t, tt.golden, i.out.String())
			if got := created(t, c); got != tt.stored {
				t.Errorf("stored = %v, want %v", got, tt.stored)
			}
		})
	}
}

func TestClientDryRunAsksNobody(t *testing.T) {
	plugintest.Kubeconfig(t)
	// Without any client a request would be a panic.
	i := (&invocation{}).run(t.Context(), demo("--dry-run=client", "-o", "yaml")...)
	if i.code != exit.OK || !strings.Contains(i.out.String(), "configRef: standard") {
		t.Errorf("exit %d with %q and %q", i.code, i.out, i.errOut)
	}
}

const users = `
- username: app
  passwordHashes: ["0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"]
  permissions: [{roleRef: read-writ, keys: [{pattern: "*", access: readwrite}]}]
`

func TestWhatIsWrongIsFoundBeforeAnythingIsWritten(t *testing.T) {
	plugintest.Kubeconfig(t)
	boundConfig := &v1alpha1.ValkeyConfig{ObjectMeta: metav1.ObjectMeta{Name: "bound"}, Spec: v1alpha1.ValkeyConfigSpec{
		BaseRef: "standard",
		ACL: []v1alpha1.ACLBinding{{
			Username: "app", PasswordHashes: []v1alpha1.PasswordHash{v1alpha1.PasswordHash(hash)},
			Permissions: []v1alpha1.Permission{{RoleRef: "read-only"}},
		}},
	}}
	service := func(owners ...metav1.OwnerReference) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: plugintest.Namespace, Name: "demo", OwnerReferences: owners}}
	}
	tests := []struct {
		name  string
		there []client.Object
		args  []string
		stdin string
		want  string
	}{
		{"no such config", nil, demo("--config", "standrad"), "", "error: ValkeyConfig \"standrad\" doesn't exist; existing: old, standard\n"},
		{"an image that is too old", nil, demo("--config", "old"), "", "error: ValkeyImage \"valkey-8.1\" has Valkey 8.1.4, but 9.0.0 or newer is needed: choose another image, or correct its version\n"},
		{"no such role", nil, demo("--acl-file", "-"), users, "error: user \"app\": ValkeyRole \"read-writ\" doesn't exist; existing: read-only, read-write\n"},
		{
			"a user that the config binds",
			[]client.Object{boundConfig},
			demo("--config", "bound", "--acl-file", "-"),
			strings.Replace(users, "read-writ", "read-write", 1),
			"error: user \"app\" is bound both by the cluster's ValkeyConfig and in spec.acl: rename or remove the one in spec.acl\n",
		},
		{"no such priority class", nil, demo("--priority-class", "hihg"), "", "error: priority class \"hihg\" doesn't exist; existing: high\n"},
		{"no such zone", nil, demo("--zones", "a,z"), "", "error: no Kubernetes node is in zone \"z\"; existing: a, b\n"},
		{
			"a name that exists",
			[]client.Object{plugintest.Active("demo", 6, 1).Cluster},
			demo("--paused"), "",
			"error: cluster \"demo\" exists already in namespace team-a and differs in shards (6 there, 3 asked for), paused (false there, true asked for); change it with: kubectl edit valkeycluster demo -n team-a\n",
		},
		{
			"the very same cluster",
			[]client.Object{plugintest.Active("demo", 3, 1).Cluster},
			demo(), "",
			"error: cluster \"demo\" exists already in namespace team-a, just as asked for; see it with: kubectl valkey status demo -n team-a\n",
		},
		{
			"a Service of that name",
			[]client.Object{service()},
			demo(), "",
			"error: a Service named \"demo\", which isn't a cluster's, exists in namespace team-a, and the cluster needs that name: choose another name\n",
		},
		{
			"everything at once", nil, demo("--config", "x", "--zones", "z", "--tls-secret", "t"), "",
			"error: ValkeyConfig \"x\" doesn't exist; existing: old, standard\nerror: Secret \"t\" doesn't exist in namespace team-a; no Secret of type kubernetes.io/tls is there\nerror: no Kubernetes node is in zone \"z\"; existing: a, b\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := plugintest.Client(menu(tt.there...)...)
			writes := 0
			c = interceptor.NewClient(c, interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
				writes++
				return nil
			}})
			i := (&invocation{client: c, stdin: tt.stdin}).run(t.Context(), tt.args...)
			if i.code != exit.Failed || i.out.String() != "" {
				t.Errorf("exit %d with %q on stdout, want 1 with nothing", i.code, i.out)
			}
			if diff := cmp.Diff(tt.want, i.errOut.String()); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
			if writes != 0 {
				t.Errorf("%d writes, want none", writes)
			}
		})
	}
}

func TestANamespaceThatDoesNotExistIsNamed(t *testing.T) {
	plugintest.Kubeconfig(t)
	i := (&invocation{client: plugintest.Client(plugintest.Menu()...)}).run(t.Context(), demo()...)
	if want := "error: namespace \"team-a\" doesn't exist: create it with kubectl create namespace team-a, or name another with -n\n"; i.errOut.String() != want {
		t.Errorf("stderr = %q, want %q", i.errOut, want)
	}
}

func TestALeftServiceOfAFormerClusterIsNoObstacle(t *testing.T) {
	plugintest.Kubeconfig(t)
	left := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: plugintest.Namespace, Name: "demo", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "ValkeyCluster", Name: "demo", UID: "former", Controller: ptr.To(true),
	}}}}
	c := plugintest.Client(menu(left)...)
	i := (&invocation{client: c}).run(t.Context(), demo()...)
	if i.code != exit.OK || !created(t, c) || !strings.HasPrefix(i.errOut.String(), "note: Service \"demo\" of a former cluster") {
		t.Errorf("exit %d with %q", i.code, i.errOut)
	}
}

func TestWhatMayNotBeReadIsSaidAndNotInTheWay(t *testing.T) {
	plugintest.Kubeconfig(t)
	inner := plugintest.Client(menu()...)
	c := interceptor.NewClient(inner, interceptor.Funcs{
		List: func(_ context.Context, c client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			gvk, err := c.GroupVersionKindFor(list)
			if err != nil {
				return err
			}
			return plugintest.Forbidden("list", strings.ToLower(strings.TrimSuffix(gvk.Kind, "List"))+"s", "")
		},
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return plugintest.Forbidden("get", "things", key.Namespace)
		},
	})
	i := (&invocation{client: c}).run(t.Context(), demo("--zones", "a", "--tls-secret", "t", "--priority-class", "p")...)
	if i.code != exit.OK || !created(t, inner) {
		t.Errorf("exit %d, want that the cluster was created", i.code)
	}
	plugintest.Golden(t, "unread.txt", i.errOut.String())
}

func TestTheServersRefusalIsOneLineAProblem(t *testing.T) {
	plugintest.Kubeconfig(t)
	refusal := func(err error) *invocation {
		c := interceptor.NewClient(plugintest.Client(menu()...), interceptor.Funcs{
			Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return err },
		})
		return (&invocation{client: c}).run(t.Context(), demo()...)
	}
	kind := schema.GroupKind{Group: v1alpha1.Group, Kind: "ValkeyCluster"}
	invalid := refusal(apierrors.NewInvalid(kind, "demo", field.ErrorList{
		field.Invalid(field.NewPath("spec", "shards"), 0, "must be at least 1"),
		field.Invalid(field.NewPath("spec", "tls"), "x", "is fixed"),
	}))
	want := "error: spec.shards: Invalid value: 0: must be at least 1\nerror: spec.tls: Invalid value: \"x\": is fixed\n"
	if invalid.code != exit.Failed || invalid.errOut.String() != want {
		t.Errorf("exit %d with %q, want %q", invalid.code, invalid.errOut, want)
	}
	forbidden := refusal(plugintest.Forbidden("create", "valkeyclusters", plugintest.Namespace))
	if want := "error: valkeyclusters can't be created: needs create valkeyclusters.valkey.gomomento.com in namespace team-a\n"; forbidden.errOut.String() != want {
		t.Errorf("stderr = %q, want %q", forbidden.errOut, want)
	}
	quota := refusal(apierrors.NewForbidden(schema.GroupResource{Resource: "valkeyclusters"}, "demo", errors.New("exceeded quota: clusters\nlimited: 3")))
	if !strings.Contains(quota.errOut.String(), "exceeded quota: clusters limited: 3") || strings.Count(quota.errOut.String(), "\n") != 1 {
		t.Errorf("stderr = %q, want the quota in one line", quota.errOut)
	}
}

func TestAnInterruptOfTheRequestLeavesNoDoubtAboutTheDoubt(t *testing.T) {
	plugintest.Kubeconfig(t)
	c := interceptor.NewClient(plugintest.Client(menu()...), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return context.Canceled
		},
	})
	i := (&invocation{client: c}).run(t.Context(), demo()...)
	want := "error: interrupted before the API server answered; see whether cluster demo was created with: kubectl valkey status demo -n team-a\n"
	if i.code != exit.Interrupted || i.errOut.String() != want {
		t.Errorf("exit %d with %q, want %q", i.code, i.errOut, want)
	}
}

func TestWrongUsageWritesNothing(t *testing.T) {
	plugintest.Kubeconfig(t)
	for _, args := range [][]string{
		{},
		{"a", "b"},
		demo("--wait", "--dry-run=client"), demo("--wait", "--paused"), demo("--timeout", "1m"), demo("--wait", "--timeout", "0s"),
		demo("-o", "wide"), demo("--dry-run=yes"), demo("--cluster-domain", "-"), demo("--toleration", ":x"),
	} {
		c := plugintest.Client(menu()...)
		i := (&invocation{client: c}).run(t.Context(), args...)
		if i.code != exit.Usage || !strings.HasPrefix(i.errOut.String(), "error: ") || created(t, c) {
			t.Errorf("%v: exit %d with %q, want 2 and a reason", args, i.code, i.errOut)
		}
	}
}
