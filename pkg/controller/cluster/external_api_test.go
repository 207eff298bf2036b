//go:build api

package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/api/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
)

var server *harness.Server

func TestMain(m *testing.M) {
	harness.Main(m, &server, harness.Options{Install: true})
}

// nobody answers: these tests have no servers.
type nobody struct{}

func (nobody) Dial(context.Context, valkey.Target, valkey.Credentials) (valkey.Node, error) {
	return nil, errors.New("there are no servers here")
}

// place is one cluster in a namespace of its own, and a reconciler with the manager's
// rights. Its client has no cache, so every pass sees the truth.
type place struct {
	*testing.T
	*Reconciler

	cluster *v1alpha1.ValkeyCluster
	events  *events.FakeRecorder
}

func newPlace(t *testing.T, access v1alpha1.ExternalAccess) *place {
	t.Helper()
	config := server.ManagerConfig()
	manager := server.ClientFor(t, config)
	p := &place{T: t, events: events.NewFakeRecorder(1000)}
	p.Reconciler = &Reconciler{
		Client: manager, Metadata: manager, Live: manager, Recorder: p.events,
		Reach: &reach.Reach{Metadata: manager, Live: manager, Dialer: nobody{}, ClusterDomain: "kube.prod"},
		pace:  newPace(), holds: newHolds(), stalls: newStalls(), moments: newMoments(), immutable: newImmutable(), pruned: newPruned(),
		gateway: &gatewayAPI{dynamic: dynamic.NewForConfigOrDie(config), discovery: discovery.NewDiscoveryClientForConfigOrDie(config)},
	}
	image := &v1alpha1.ValkeyImage{ObjectMeta: metav1.ObjectMeta{GenerateName: "external-"}, Spec: v1alpha1.ValkeyImageSpec{Repository: "valkey/valkey", Tag: "9.1.2", Version: "9.1.2"}}
	p.create(image)
	menu := &v1alpha1.ValkeyConfig{ObjectMeta: metav1.ObjectMeta{GenerateName: "external-"}, Spec: v1alpha1.ValkeyConfigSpec{ImageRef: image.Name}}
	p.create(menu)
	access.Enabled = true
	p.cluster = &v1alpha1.ValkeyCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: server.Namespace(t, nil), Name: "c"},
		Spec:       v1alpha1.ValkeyClusterSpec{ConfigRef: menu.Name, Shards: 3, ReplicasPerShard: 1, ExternalAccess: &access},
	}
	p.create(p.cluster)
	return p
}

func (p *place) create(obj client.Object) {
	p.Helper()
	if err := server.Client.Create(p.Context(), obj); err != nil {
		p.Fatalf("create %s: %v", objects.KindOf(obj), err)
	}
}

// pass reconciles the cluster so many times.
func (p *place) pass(times int) {
	p.Helper()
	for range times {
		if _, err := p.Reconcile(p.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p.cluster)}); err != nil {
			p.Fatalf("reconcile: %v", err)
		}
	}
	p.read(p.cluster)
}

func (p *place) read(obj client.Object) {
	p.Helper()
	if err := server.Client.Get(p.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		p.Fatalf("read %s: %v", obj.GetName(), err)
	}
}

func (p *place) edit(change func(*v1alpha1.ValkeyClusterSpec)) {
	p.Helper()
	p.read(p.cluster)
	change(&p.cluster.Spec)
	if err := server.Client.Update(p.Context(), p.cluster); err != nil {
		p.Fatal(err)
	}
}

// services are the shard Services, by name.
func (p *place) services() map[string]*corev1.Service {
	p.Helper()
	var list corev1.ServiceList
	if err := server.Client.List(p.Context(), &list, client.InNamespace(p.cluster.Namespace), client.HasLabels{v1alpha1.LabelShardIndex}); err != nil {
		p.Fatal(err)
	}
	out := map[string]*corev1.Service{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

// wantCondition wants external access not to be ready for a reason.
func (p *place) wantCondition(reason string, words ...string) {
	p.Helper()
	for _, c := range p.cluster.Status.Conditions {
		if c.Type != v1alpha1.ConditionExternalAccessReady {
			continue
		}
		if c.Status != metav1.ConditionFalse || c.Reason != reason {
			p.Errorf("ExternalAccessReady is %s, %s: %s; want False, %s", c.Status, c.Reason, c.Message, reason)
		}
		for _, w := range words {
			if !strings.Contains(c.Message, w) {
				p.Errorf("%q is missing in %q", w, c.Message)
			}
		}
		return
	}
	p.Error("there is no condition ExternalAccessReady")
}

// announceInside records that every node announces nothing of the outside, as the
// node controller does before it makes a pod.
func (p *place) announceInside() {
	p.Helper()
	var nodes v1alpha1.ValkeyNodeList
	if err := server.Client.List(p.Context(), &nodes, client.InNamespace(p.cluster.Namespace)); err != nil {
		p.Fatal(err)
	}
	for i := range nodes.Items {
		nodes.Items[i].Status.Applied = &v1alpha1.Applied{Announcement: &v1alpha1.Announcement{EndpointType: v1alpha1.EndpointIP}}
		if err := server.Client.Status().Update(p.Context(), &nodes.Items[i]); err != nil {
			p.Fatal(err)
		}
	}
}

// S1-18, S1-26, S1-28, S1-57, S1-112, S1-116 to S1-118, H-01: Services are made before
// nodes, their ports read back, and a second look changes nothing.
func TestShardServicesAreMadeAndTheirPortsReadBack(t *testing.T) {
	p := newPlace(t, v1alpha1.ExternalAccess{Domain: "valkey.example.com", ServiceAnnotations: map[string]string{"example.com/host": "{hostname}"}})
	p.pass(1)
	services := p.services()
	if len(services) != 3 {
		t.Fatalf("%d Services", len(services))
	}
	p.pass(2)
	for name, s := range services {
		if s.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedBy || s.Spec.Selector[v1alpha1.LabelExternal] != "true" || s.Spec.Type != corev1.ServiceTypeNodePort {
			t.Errorf("Service %s: %+v", name, s)
		}
		if now := p.services()[name]; now.ResourceVersion != s.ResourceVersion {
			t.Errorf("Service %s was written again", name)
		}
	}
	if len(p.cluster.Status.ExternalEndpoints) != 3 {
		t.Fatalf("endpoints %+v", p.cluster.Status.ExternalEndpoints)
	}
	for _, e := range p.cluster.Status.ExternalEndpoints {
		if got := objects.NodePorts(services[e.Service]); len(got) != 2 || got[0] == 0 || !slices.Equal(got, e.NodePorts) || !slices.Equal(got, e.Ports) {
			t.Errorf("status says %+v, the Service %v", e, got)
		}
		if services[e.Service].Annotations["example.com/host"] != e.Hostname || e.Hostname == "" {
			t.Errorf("annotations %v, hostname %q", services[e.Service].Annotations, e.Hostname)
		}
	}
	var nodes v1alpha1.ValkeyNodeList
	if err := server.Client.List(t.Context(), &nodes, client.InNamespace(p.cluster.Namespace)); err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 6 {
		t.Fatalf("%d nodes", len(nodes.Items))
	}
	for i := range nodes.Items {
		for _, s := range services {
			if nodes.Items[i].CreationTimestamp.Before(&s.CreationTimestamp) || !nodes.Items[i].Spec.External {
				t.Errorf("node %s was made before Service %s, or without external access", nodes.Items[i].Name, s.Name)
			}
		}
	}
	p.edit(func(s *v1alpha1.ValkeyClusterSpec) {
		s.ExternalAccess.ServiceAnnotations = map[string]string{"example.com/other": "{shard}"}
		s.ExternalAccess.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	})
	p.pass(2)
	for name, now := range p.services() {
		if !slices.Equal(objects.NodePorts(now), objects.NodePorts(services[name])) {
			t.Errorf("Service %s lost its node ports", name)
		}
		if _, old := now.Annotations["example.com/host"]; old || now.Annotations["example.com/other"] == "" || now.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
			t.Errorf("Service %s: annotations %v, policy %s", name, now.Annotations, now.Spec.ExternalTrafficPolicy)
		}
	}
}

// S1-18: nothing is adopted by name.
func TestAServiceOfAnotherOwnerIsNeverTouched(t *testing.T) {
	p := newPlace(t, v1alpha1.ExternalAccess{})
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: p.cluster.Namespace, Name: "c-shard-1"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "other"}, Ports: []corev1.ServicePort{{Name: "x", Port: 80}},
	}}
	p.create(foreign)
	p.pass(2)
	p.wantCondition(v1alpha1.ReasonNameConflict, "Service c-shard-1 exists and does not belong to this cluster")
	version := foreign.ResourceVersion
	p.read(foreign)
	if foreign.ResourceVersion != version {
		t.Error("the foreign Service was changed")
	}
	if len(p.services()) != 2 {
		t.Errorf("Services %v, want those of the other shards", p.services())
	}
	warned := 0
	for len(p.events.Events) > 0 {
		if e := <-p.events.Events; strings.Contains(e, v1alpha1.ReasonNameConflict) {
			warned++
		}
	}
	if warned != 1 {
		t.Errorf("%d events say so", warned)
	}
	if err := server.Client.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	p.pass(2)
	if len(p.services()) != 3 {
		t.Errorf("Services %v after the name is free", p.services())
	}
}

// S1-59, S1-81, S1-119, S1-120, E-14
func TestServicesGoWithTheirShardsAndWithExternalAccess(t *testing.T) {
	p := newPlace(t, v1alpha1.ExternalAccess{})
	p.pass(2)
	p.edit(func(s *v1alpha1.ValkeyClusterSpec) { s.Shards = 2 })
	var nodes v1alpha1.ValkeyNodeList
	if err := server.Client.List(t.Context(), &nodes, client.InNamespace(p.cluster.Namespace), client.MatchingLabels{v1alpha1.LabelShardIndex: "2"}); err != nil {
		t.Fatal(err)
	}
	p.pass(1)
	if len(p.services()) != 3 {
		t.Error("the Service of a shard went before its nodes")
	}
	for i := range nodes.Items {
		if err := client.IgnoreNotFound(server.Client.Delete(t.Context(), &nodes.Items[i])); err != nil {
			t.Fatal(err)
		}
	}
	p.pass(2)
	if s := p.services(); len(s) != 2 || s["c-shard-2"] != nil || len(p.cluster.Status.ExternalEndpoints) != 2 {
		t.Errorf("Services %v, endpoints %v", s, p.cluster.Status.ExternalEndpoints)
	}
	p.announceInside()
	p.edit(func(s *v1alpha1.ValkeyClusterSpec) { s.ExternalAccess = nil })
	p.pass(3)
	if s := p.services(); len(s) > 0 || len(p.cluster.Status.ExternalEndpoints) > 0 {
		t.Errorf("Services %v, endpoints %v", s, p.cluster.Status.ExternalEndpoints)
	}
}

// E-07, S1-30
func TestAPendingLoadBalancerIsShownAndBlocksNothing(t *testing.T) {
	p := newPlace(t, v1alpha1.ExternalAccess{ServiceType: corev1.ServiceTypeLoadBalancer})
	p.pass(2)
	p.wantCondition(v1alpha1.ReasonExternalPending, "c-shard-0", "c-shard-1", "c-shard-2")
	service := p.services()["c-shard-1"]
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.5"}}
	if err := server.Client.Status().Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	p.pass(1)
	p.wantCondition(v1alpha1.ReasonExternalPending, "c-shard-0", "c-shard-2")
	if e := p.cluster.Status.ExternalEndpoints[1]; !slices.Equal(e.Addresses, []string{"203.0.113.5"}) || !slices.Equal(e.Ports, []int32{6379, 6380}) {
		t.Errorf("endpoint %+v", e)
	}
	// E-10: the type goes back and forth.
	p.announceInside()
	for _, kind := range []corev1.ServiceType{corev1.ServiceTypeNodePort, corev1.ServiceTypeClusterIP, corev1.ServiceTypeLoadBalancer} {
		p.edit(func(s *v1alpha1.ValkeyClusterSpec) { s.ExternalAccess.ServiceType = kind })
		p.pass(2)
		for name, s := range p.services() {
			if s.Spec.Type != kind {
				t.Errorf("Service %s is %s, want %s", name, s.Spec.Type, kind)
			}
		}
	}
}
