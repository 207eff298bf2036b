// Package plugintest holds what the tests of several commands need: clusters as
// the manager leaves them, a client that serves them, a terminal, golden files.
package plugintest

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

// Now is the present of all fixtures.
var Now = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// Names of the fixtures.
const (
	Namespace = "team-a"
	Image     = "valkey/valkey:9.1.2"
)

// Fixture is a cluster with all that belongs to it. Tests change what they need
// before they hand Objects to a client.
type Fixture struct {
	Cluster *v1alpha1.ValkeyCluster
	Nodes   []*v1alpha1.ValkeyNode
	Pods    []*corev1.Pod
	Events  []*corev1.Event
	// ACL is the published ACL file.
	ACL *corev1.ConfigMap
}

// Active returns a healthy cluster, five minutes old, spread over zones a to c.
func Active(name string, shards, replicas int32) *Fixture {
	f := &Fixture{Cluster: &v1alpha1.ValkeyCluster{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: name, UID: types.UID("uid-" + name), Generation: 1,
			CreationTimestamp: metav1.NewTime(Now.Add(-5 * time.Minute)),
		},
		Spec: v1alpha1.ValkeyClusterSpec{ConfigRef: "standard", Shards: shards, ReplicasPerShard: replicas},
	}}
	parts := slots.Split(int(shards))
	status := &f.Cluster.Status
	for s := range shards {
		shard := v1alpha1.ShardStatus{Index: s, Slots: parts[s].String(), SlotCount: int32(parts[s].Len())}
		for n := range replicas + 1 {
			node := fmt.Sprintf("%s-%05x", name, 0x3fa2c+s*0x1111+n*0x13)
			role := "replica"
			if n == 0 {
				role, shard.Primary = "primary", node
			} else {
				shard.Replicas = append(shard.Replicas, node)
			}
			f.addNode(node, s, n, role)
			status.Nodes = append(status.Nodes, node)
		}
		status.Shards = append(status.Shards, shard)
	}
	slices.Sort(status.Nodes)
	total := shards * (replicas + 1)
	status.State = v1alpha1.StateActive
	status.ObservedGeneration = 1
	status.ShardCount, status.ReadyShards = shards, shards
	status.Ready = fmt.Sprintf("%d/%d", total, total)
	status.Endpoint = objects.ServiceDNSName(name, Namespace, "cluster.local") + ":6379"
	f.Condition(v1alpha1.ConditionReady, true, v1alpha1.ReasonActive, "every slot is served and every node is in sync")
	f.Condition(v1alpha1.ConditionProgressing, false, v1alpha1.ReasonComplete, "the cluster is as wished")
	f.Condition(v1alpha1.ConditionDegraded, false, v1alpha1.ReasonHealthy, "every node answers and is in sync")
	f.Condition(v1alpha1.ConditionConfigResolved, true, v1alpha1.ReasonResolved, "config standard resolves to image "+Image+", Valkey 9.1.2")
	f.ACL = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: objects.ACLConfigMapName(name)},
		Data:       map[string]string{objects.ACLFile: "user default on nopass ~* &* +@all\nuser _momento_operator on #00 resetkeys +ping\n"},
	}
	return f
}

// Condition sets a condition of the cluster, as seen a minute ago.
func (f *Fixture) Condition(kind string, status bool, reason, message string) {
	c := metav1.Condition{
		Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message,
		ObservedGeneration: f.Cluster.Generation, LastTransitionTime: metav1.NewTime(Now.Add(-time.Minute)),
	}
	if status {
		c.Status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&f.Cluster.Status.Conditions, c)
}

// Event adds an event about an object, age before Now.
func (f *Fixture) Event(kind, object, eventType, reason, message string, age time.Duration) {
	f.Events = append(f.Events, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: Namespace, Name: fmt.Sprintf("%s.%d", object, len(f.Events))},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: Namespace, Name: object},
		Type:           eventType, Reason: reason, Message: message, Count: 1,
		LastTimestamp: metav1.NewTime(Now.Add(-age)),
	})
}

// Objects are all objects of the fixture.
func (f *Fixture) Objects() []client.Object {
	all := []client.Object{f.Cluster}
	for _, n := range f.Nodes {
		all = append(all, n)
	}
	for _, p := range f.Pods {
		all = append(all, p)
	}
	for _, e := range f.Events {
		all = append(all, e)
	}
	if f.ACL != nil {
		all = append(all, f.ACL)
	}
	return all
}

func (f *Fixture) addNode(name string, shard, index int32, role string) {
	n := len(f.Nodes)
	ip := fmt.Sprintf("10.0.%d.%d", n%3, 10+n)
	f.Nodes = append(f.Nodes, &v1alpha1.ValkeyNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		Spec: v1alpha1.ValkeyNodeSpec{
			ClusterName: f.Cluster.Name, Image: Image, ShardIndex: shard, NodeIndex: index, Lifecycle: v1alpha1.LifecycleActive,
		},
		Status: v1alpha1.ValkeyNodeStatus{PodIP: ip, NodeID: fmt.Sprintf("%040x", 0xabc+n), Role: role, Ready: true},
	})
	zone := string(rune('a' + n%3))
	f.Pods = append(f.Pods, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: map[string]string{
			v1alpha1.LabelName: v1alpha1.ApplicationName, v1alpha1.LabelInstance: f.Cluster.Name,
			v1alpha1.LabelShardIndex: fmt.Sprint(shard), corev1.LabelTopologyZone: zone,
		}},
		Spec: corev1.PodSpec{NodeName: "node-" + zone, Containers: []corev1.Container{{Name: "valkey", Image: Image}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: ip,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue},
				{Type: v1alpha1.InSyncGate, Status: corev1.ConditionTrue},
			},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "valkey", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	})
}

// Menu is a starter menu: config standard, image valkey-9.1, role read-write.
func Menu() []client.Object {
	memory := resource.MustParse("1Gi")
	return []client.Object{
		&v1alpha1.ValkeyImage{ObjectMeta: metav1.ObjectMeta{Name: "valkey-9.1"}, Spec: v1alpha1.ValkeyImageSpec{Repository: "valkey/valkey", Tag: "9.1.2", Version: "9.1.2"}},
		&v1alpha1.ValkeyImage{ObjectMeta: metav1.ObjectMeta{Name: "valkey-8.1"}, Spec: v1alpha1.ValkeyImageSpec{Repository: "valkey/valkey", Tag: "8.1.4", Version: "8.1.4"}},
		&v1alpha1.ValkeyConfig{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, Spec: v1alpha1.ValkeyConfigSpec{ImageRef: "valkey-9.1", Resources: &v1alpha1.Resources{Memory: &memory}}},
		&v1alpha1.ValkeyConfig{ObjectMeta: metav1.ObjectMeta{Name: "old"}, Spec: v1alpha1.ValkeyConfigSpec{ImageRef: "valkey-8.1"}},
		&v1alpha1.ValkeyRole{ObjectMeta: metav1.ObjectMeta{Name: "read-write"}},
		&v1alpha1.ValkeyRole{ObjectMeta: metav1.ObjectMeta{Name: "read-only"}},
	}
}
