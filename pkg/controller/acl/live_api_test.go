//go:build api

package acl

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	valkeygo "github.com/valkey-io/valkey-go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey/valkeytest"
)

// bench is a cluster of two real servers, the second a replica of the first, whose
// objects are in a fake Kubernetes and whose kubelet is the test.
type bench struct {
	t       *testing.T
	client  client.WithWatch
	key     types.NamespacedName
	nodes   []string
	ips     []string
	files   []string
	events  *events.FakeRecorder
	refresh map[string]string // annotations that the kubelet has acted on
	clock   time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, key: types.NamespacedName{Namespace: "n", Name: "c"}, events: events.NewFakeRecorder(20), refresh: map[string]string{}, clock: time.Now()}
	cluster := &v1alpha1.ValkeyCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "cluster"},
		Spec:       v1alpha1.ValkeyClusterSpec{ConfigRef: "standard", Shards: 1, ReplicasPerShard: 1, ACL: []v1alpha1.ACLBinding{bound("app", "old"), bound("keep", "keep")}},
	}
	passwords, err := objects.NewPasswords(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	role := &v1alpha1.ValkeyRole{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.ValkeyRoleSpec{Categories: []v1alpha1.CategoryRule{{Name: "all", Access: v1alpha1.AccessAllow}}}}
	file, problems := acl.Render(reach.ACLInput(nil, map[string]*v1alpha1.ValkeyRole{"all": role}, cluster, passwords))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	all := []client.Object{
		cluster, role, objects.AuthSecret(cluster, passwords), objects.ACLConfigMap(cluster, file),
		&v1alpha1.ValkeyConfig{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, Spec: v1alpha1.ValkeyConfigSpec{ImageRef: "v9"}},
		&v1alpha1.ValkeyImage{ObjectMeta: metav1.ObjectMeta{Name: "v9"}, Spec: v1alpha1.ValkeyImageSpec{Repository: "valkey", Tag: "9", Version: "9.1.2"}},
	}
	for i := range 2 {
		ip := valkeytest.Loopback(i + 1)
		name := fmt.Sprintf("c-0000%d", i)
		b.nodes, b.ips = append(b.nodes, name), append(b.ips, ip)
		b.files = append(b.files, startServer(t, ip, b.ips[0], file, passwords.Replication))
		node := objects.Node(cluster, objects.NodeInput{Name: name, JoinType: v1alpha1.JoinShard, NodeIndex: int32(i)})
		node.UID, node.Spec.Lifecycle = types.UID(name), v1alpha1.LifecycleActive
		pod := objects.Pod(node, objects.PodInput{})
		pod.UID = types.UID("pod " + name)
		pod.Status = corev1.PodStatus{PodIP: ip, Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
		all = append(all, node, pod)
	}
	b.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).WithStatusSubresource(&v1alpha1.ValkeyCluster{}, &v1alpha1.ValkeyNode{}).Build()
	return b
}

func bound(user, password string) v1alpha1.ACLBinding {
	return v1alpha1.ACLBinding{
		Username: user, PasswordHashes: []v1alpha1.PasswordHash{v1alpha1.PasswordHash(acl.Hash(password))},
		Permissions: []v1alpha1.Permission{{RoleRef: "all", Keys: []v1alpha1.KeyPermission{{Pattern: "*", Access: v1alpha1.KeyReadWrite}}}},
	}
}

// startServer starts a server that follows the one at primary, unless it is that one,
// and returns its ACL file.
func startServer(t *testing.T, ip, primary, users, password string) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "users.acl")
	conf := fmt.Sprintf("port 6379\nbind %s\ndir %s\naclfile %s\nsave \"\"\nloglevel warning\nrepl-diskless-sync-delay 0\nprimaryuser %s\nprimaryauth %s\n", ip, dir, file, acl.ReplicationUser, password)
	if ip != primary {
		conf += "replicaof " + primary + " 6379\n"
	}
	for name, text := range map[string]string{file: users, filepath.Join(dir, "valkey.conf"): conf} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	valkeytest.Start(t, "", filepath.Join(dir, "valkey.conf"))
	return file
}

// look is one pass of a manager that was started just now.
func (b *bench) look() {
	b.t.Helper()
	r := &Reconciler{
		Client: b.client, Recorder: b.events,
		Reach:     &reach.Reach{Metadata: b.client, Live: b.client, Dialer: valkey.NewDialer(), ClusterDomain: "cluster.local"},
		refresher: &reach.Refresher{Client: b.client, Annotation: v1alpha1.AnnotationRefreshACL},
		pace:      &reach.Pace{}, now: func() time.Time { b.clock = b.clock.Add(10 * time.Second); return b.clock },
		listed: map[types.NamespacedName]map[types.UID]string{},
	}
	if _, err := r.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: b.key}); err != nil {
		b.t.Fatal(err)
	}
}

// kubelet refreshes the files of the pods that were touched. It reports how many.
func (b *bench) kubelet() int {
	b.t.Helper()
	cm := &corev1.ConfigMap{}
	b.get(objects.ACLConfigMapName("c"), cm)
	n := 0
	for i, name := range b.nodes {
		pod := &corev1.Pod{}
		b.get(name, pod)
		if touched := pod.Annotations[v1alpha1.AnnotationRefreshACL]; touched != b.refresh[name] {
			b.refresh[name] = touched
			n++
			if err := os.WriteFile(b.files[i], []byte(cm.Data[objects.ACLFile]), 0o600); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	return n
}

func (b *bench) get(name string, obj client.Object) {
	b.t.Helper()
	if err := b.client.Get(b.t.Context(), client.ObjectKey{Namespace: "n", Name: name}, obj); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) edit(change func(*v1alpha1.ValkeyCluster)) {
	b.t.Helper()
	c := &v1alpha1.ValkeyCluster{}
	b.get("c", c)
	change(c)
	if err := b.client.Update(b.t.Context(), c); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) applied() metav1.Condition {
	b.t.Helper()
	c := &v1alpha1.ValkeyCluster{}
	b.get("c", c)
	for _, condition := range c.Status.Conditions {
		if condition.Type == v1alpha1.ConditionACLApplied {
			return condition
		}
	}
	return metav1.Condition{}
}

// login connects to a server as a user.
func (b *bench) login(i int, user, password string) (valkeygo.Client, error) {
	return valkeygo.NewClient(valkeygo.ClientOption{
		InitAddress: []string{b.ips[i] + ":6379"}, Username: user, Password: password, ForceSingleClient: true, DisableCache: true,
	})
}

func (b *bench) wantLogins(good, bad string) {
	b.t.Helper()
	for i := range b.ips {
		c, err := b.login(i, "app", good)
		if err != nil {
			b.t.Errorf("server %d refuses the password %q: %v", i, good, err)
		} else {
			c.Close()
		}
		if c, err := b.login(i, "app", bad); err == nil {
			c.Close()
			b.t.Errorf("server %d takes the password %q", i, bad)
		}
	}
}

// settle looks until the users are applied, with a kubelet that is one look late.
func (b *bench) settle(what string, done func() bool) {
	b.t.Helper()
	for range 30 {
		b.look()
		if done() {
			return
		}
		b.kubelet()
	}
	b.t.Fatalf("%s: not done after 30 looks, ACLApplied is %+v", what, b.applied())
}

func (b *bench) isApplied() bool { return b.applied().Status == metav1.ConditionTrue }

// stats are what the servers count of their connections to replicas.
func (b *bench) stats() string {
	b.t.Helper()
	var out []string
	for i := range b.ips {
		c, err := b.login(i, "keep", "keep")
		if err != nil {
			b.t.Fatal(err)
		}
		text, err := c.Do(context.Background(), c.B().Info().Section("stats", "replication").Build()).ToString()
		c.Close()
		if err != nil {
			b.t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "sync_") || strings.HasPrefix(line, "master_link_status") || strings.HasPrefix(line, "connected_slaves") {
				out = append(out, strings.TrimSpace(line))
			}
		}
	}
	return strings.Join(out, " ")
}

func (b *bench) waitLinked() {
	b.t.Helper()
	deadline := time.NewTimer(30 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for {
		if c, err := b.login(1, "keep", "keep"); err == nil {
			text, _ := c.Do(context.Background(), c.B().Info().Section("replication").Build()).ToString()
			c.Close()
			if strings.Contains(text, "master_link_status:up") {
				return
			}
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			b.t.Fatal("the replica never connected")
		}
	}
}

// with a manager that is restarted between any two looks.
func TestUsersAreBroughtToRealServers(t *testing.T) {
	b := newBench(t)
	b.waitLinked()
	b.settle("the first users", b.isApplied)
	if b.kubelet() > 0 {
		t.Error("kubelets were asked to refresh files that were there")
	}
	links := b.stats()
	kept, err := b.login(0, "keep", "keep")
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	id := func() int64 {
		n, err := kept.Do(t.Context(), kept.B().ClientId().Build()).AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := id()

	b.edit(func(c *v1alpha1.ValkeyCluster) { c.Spec.ACL[0] = bound("app", "new") })
	b.look()
	if c := b.applied(); c.Reason != v1alpha1.ReasonACLPending || !strings.Contains(c.Message, b.nodes[0]) {
		t.Errorf("before the kubelets refreshed the file: %+v", c)
	}
	b.wantLogins("old", "new")
	b.kubelet()
	b.settle("another password", b.isApplied)
	b.wantLogins("new", "old")

	// A server is changed by hand.
	if err := kept.Do(t.Context(), kept.B().Arbitrary("ACL", "SETUSER", "intruder", "on", "nopass", "~*", "+@all").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	b.look()
	if _, err := b.login(0, "intruder", "x"); err == nil {
		t.Error("the user that was added by hand is there still")
	}

	// A role with a name that servers don't know.
	role := &v1alpha1.ValkeyRole{ObjectMeta: metav1.ObjectMeta{Name: "odd"}, Spec: v1alpha1.ValkeyRoleSpec{Commands: []v1alpha1.CommandRule{{Name: "nosuch", Access: v1alpha1.AccessAllow}}}}
	if err := b.client.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	b.edit(func(c *v1alpha1.ValkeyCluster) { c.Spec.ACL[0].Permissions[0].RoleRef = "odd" })
	b.look()
	if c := b.applied(); c.Reason != v1alpha1.ReasonRoleRefused || !strings.Contains(c.Message, `"odd"`) || !strings.Contains(c.Message, `"nosuch"`) {
		t.Errorf("ACLApplied is %+v", c)
	}
	b.wantLogins("new", "old")
	b.edit(func(c *v1alpha1.ValkeyCluster) { c.Spec.ACL[0].Permissions[0].RoleRef = "all" })
	b.settle("the role as it was", b.isApplied)

	b.rotate()
	if after := id(); after != before {
		t.Errorf("the connection of a user that did not change is another: %d, it was %d", after, before)
	}
	if after := b.stats(); after != links {
		t.Errorf("replication is %s, it was %s", after, links)
	}
}

// rotate asks for new system passwords and follows it to its end.
func (b *bench) rotate() {
	b.t.Helper()
	was, now := &corev1.Secret{}, &corev1.Secret{}
	b.get(objects.AuthSecretName("c"), was)
	asked := request.NewRotateCredentials("r1")
	b.edit(func(c *v1alpha1.ValkeyCluster) {
		c.Annotations = map[string]string{request.Key(asked.Verb): asked.Value()}
	})
	var said []string
	b.settle("the rotation", func() bool {
		c := &v1alpha1.ValkeyCluster{}
		b.get("c", c)
		answer, ok := asked.Answer(c)
		if len(said) == 0 || said[len(said)-1] != answer.Message {
			said = append(said, answer.Message)
		}
		return ok && answer.State == request.Done
	})
	b.t.Logf("the answers were %q", said)
	b.get(objects.AuthSecretName("c"), now)
	if string(now.Data[objects.AuthKeyRotation]) != "r1" || len(now.Data) != len(was.Data)+1 {
		b.t.Errorf("the Secret holds %d keys, it held %d", len(now.Data), len(was.Data))
	}
	for i := range b.ips {
		for user, key := range map[string]string{acl.OperatorUser: objects.AuthKeyOperator, acl.ReplicationUser: objects.AuthKeyReplication} {
			if c, err := b.login(i, user, string(was.Data[key])); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
				b.t.Errorf("server %d takes the old password of %s (%v)", i, user, err)
				if err == nil {
					c.Close()
				}
			}
		}
		c, err := b.login(i, "keep", "keep")
		if err != nil {
			b.t.Fatal(err)
		}
		got, err := c.Do(context.Background(), c.B().ConfigGet().Parameter("primaryauth").Build()).AsStrMap()
		c.Close()
		if err != nil || got["primaryauth"] != string(now.Data[objects.AuthKeyReplication]) {
			b.t.Errorf("server %d logs in to its primary with another password (%v)", i, err)
		}
	}
	b.look()
	again := &corev1.Secret{}
	b.get(objects.AuthSecretName("c"), again)
	if again.ResourceVersion != now.ResourceVersion {
		b.t.Error("one request rotated twice")
	}
}
