//go:build api

package tls

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/reach"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey/valkeytest"
)

// bench is a cluster of three servers, whose objects are in a fake Kubernetes and
// whose kubelets are the test.
type bench struct {
	t       *testing.T
	client  client.WithWatch
	servers []*tlsServer
	frozen  int // index of the server whose kubelet refreshes nothing, or -1
	touched map[string]string
	clock   time.Time
}

type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func certify(t *testing.T, template *x509.Certificate, by *authority) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(90*24*time.Hour)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{certificate, key}
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	return certify(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

// data is the content of a TLS Secret with a new leaf of the authority.
func (a *authority) data(t *testing.T) map[string][]byte {
	t.Helper()
	leaf := certify(t, &x509.Certificate{
		DNSNames:    []string{"c.n.svc.cluster.local", "*.c.n.svc.cluster.local"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a)
	key, err := x509.MarshalPKCS8PrivateKey(leaf.key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		corev1.TLSCertKey: leaf.pem(), corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), "ca.crt": a.pem(),
	}
}

func newBench(t *testing.T, data map[string][]byte) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	cluster := &v1alpha1.ValkeyCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "cluster"},
		Spec:       v1alpha1.ValkeyClusterSpec{Shards: 3, TLS: &v1alpha1.TLS{SecretRef: "cert"}},
	}
	material := objects.TLSMaterial{CA: data["ca.crt"], Certificate: data[corev1.TLSCertKey], Key: data[corev1.TLSPrivateKeyKey]}
	secret := objects.TLSSecret(cluster, material)
	all := []client.Object{
		cluster, secret, objects.AuthSecret(cluster, objects.Passwords{Operator: "o", Replication: "r"}),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "cert"}, Type: corev1.SecretTypeTLS, Data: data},
	}
	b := &bench{t: t, frozen: -1, touched: map[string]string{}, clock: time.Now()}
	for i := range 3 {
		ip := valkeytest.Loopback(i + 1)
		node := objects.Node(cluster, objects.NodeInput{Name: fmt.Sprintf("c-0000%d", i), JoinType: v1alpha1.JoinShard, ShardIndex: int32(i)})
		node.UID, node.Spec.Lifecycle = types.UID(node.Name), v1alpha1.LifecycleActive
		pod := objects.Pod(node, objects.PodInput{})
		pod.UID = types.UID("pod " + node.Name)
		pod.Status = corev1.PodStatus{PodIP: ip, Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
		all = append(all, node, pod)
		b.servers = append(b.servers, serveTLS(t, ip, maps.Clone(secret.Data), settings.TLSDirectives(material.Files())))
	}
	b.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).WithStatusSubresource(&v1alpha1.ValkeyCluster{}, &v1alpha1.ValkeyNode{}).Build()
	return b
}

// look is one pass of a manager that was started just now, after which every server
// must accept every other.
func (b *bench) look() {
	b.t.Helper()
	dialer := valkey.NewDialer()
	dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no DNS here") }}
	r := &Reconciler{
		Client: b.client, Recorder: events.NewFakeRecorder(20), Handshaker: dialer,
		Reach:     &reach.Reach{Metadata: b.client, Live: b.client, Dialer: dialer, ClusterDomain: "cluster.local"},
		refresher: &reach.Refresher{Client: b.client, Annotation: v1alpha1.AnnotationRefreshTLS},
		pace:      &reach.Pace{}, now: func() time.Time { b.clock = b.clock.Add(time.Second); return b.clock },
	}
	if _, err := r.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "n", Name: "c"}}); err != nil {
		b.t.Fatal(err)
	}
	for i, s := range b.servers {
		for j, other := range b.servers {
			if err := s.accepts(other); err != nil {
				b.t.Fatalf("server %d refuses server %d: %v", i, j, err)
			}
		}
	}
}

// kubelets refresh the files of pods that were touched, one of them each time.
func (b *bench) kubelets() {
	b.t.Helper()
	secret := &corev1.Secret{}
	b.get(objects.TLSSecretName("c"), secret)
	for i, s := range b.servers {
		pod := &corev1.Pod{}
		b.get(fmt.Sprintf("c-0000%d", i), pod)
		now := pod.Annotations[v1alpha1.AnnotationRefreshTLS]
		if i == b.frozen || now == b.touched[pod.Name] {
			continue
		}
		b.touched[pod.Name] = now
		s.mu.Lock()
		s.disk = maps.Clone(secret.Data)
		s.mu.Unlock()
		return
	}
}

func (b *bench) get(name string, obj client.Object) {
	b.t.Helper()
	if err := b.client.Get(b.t.Context(), client.ObjectKey{Namespace: "n", Name: name}, obj); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) put(data map[string][]byte) {
	b.t.Helper()
	secret := &corev1.Secret{}
	b.get("cert", secret)
	secret.Data = data
	if err := b.client.Update(b.t.Context(), secret); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) ready() metav1.Condition {
	b.t.Helper()
	c := &v1alpha1.ValkeyCluster{}
	b.get("c", c)
	for _, condition := range c.Status.Conditions {
		if condition.Type == v1alpha1.ConditionTLSReady {
			return condition
		}
	}
	return metav1.Condition{}
}

// serving are the servers that serve the leaf of some data.
func (b *bench) serving(data map[string][]byte) (out []int) {
	block, _ := pem.Decode(data[corev1.TLSCertKey])
	for i, s := range b.servers {
		s.mu.Lock()
		if slices.Equal(s.leaf.Certificate[0], block.Bytes) {
			out = append(out, i)
		}
		s.mu.Unlock()
	}
	return out
}

// settle looks until TLSReady is true. It returns every message on the way.
func (b *bench) settle(what string) (said []string) {
	b.t.Helper()
	for range 60 {
		b.look()
		c := b.ready()
		if len(said) == 0 || said[len(said)-1] != c.Message {
			said = append(said, c.Message)
		}
		if c.Status == metav1.ConditionTrue {
			return said
		}
		b.kubelets()
	}
	b.t.Fatalf("%s: not done after 60 looks: %q", what, said)
	return nil
}

func (b *bench) sets() (n int) {
	for _, s := range b.servers {
		s.mu.Lock()
		n += s.sets
		s.mu.Unlock()
	}
	return n
}

// L-08, L-09, L-11: with a manager that is restarted between any two looks, kubelets
// that refresh one after the other, and every server verified by real handshakes.
func TestEveryWayToAnotherCertificateIsSafeAndEnds(t *testing.T) {
	first, second, third := newAuthority(t, "first"), newAuthority(t, "second"), newAuthority(t, "third")
	data := first.data(t)
	b := newBench(t, data)
	b.settle("the first certificate")
	for _, step := range []struct {
		name  string
		data  map[string][]byte
		words []string // that are said on the way
	}{
		{"a renewed leaf", first.data(t), []string{"0 of 3", "2 of 3"}},
		{"another CA with both in the bundle", bundled(second.data(t), first, second), []string{"step 1"}},
		{"a straight swap", third.data(t), []string{"step 1", "step 2", "waiting for c-0000"}},
	} {
		b.put(step.data)
		said := strings.Join(b.settle(step.name), "\n")
		if got := b.serving(step.data); len(got) != 3 {
			t.Errorf("%s: TLSReady is true and servers %v serve it", step.name, got)
		}
		for _, word := range step.words {
			if !strings.Contains(said, word) {
				t.Errorf("%s: %q was never said in\n%s", step.name, word, said)
			}
		}
	}
	secret := &corev1.Secret{}
	b.look()
	b.get(objects.TLSSecretName("c"), secret)
	if len(secret.Data) != 4 {
		t.Errorf("the copy still holds files of before: %d", len(secret.Data))
	}
	// At rest servers are asked and not told.
	before, version := b.sets(), secret.ResourceVersion
	b.look()
	b.get(objects.TLSSecretName("c"), secret)
	if b.sets() != before || secret.ResourceVersion != version {
		t.Error("a look at rest changes something")
	}
}

func bundled(data map[string][]byte, authorities ...*authority) map[string][]byte {
	data["ca.crt"] = nil
	for _, a := range authorities {
		data["ca.crt"] = append(data["ca.crt"], a.pem()...)
	}
	return data
}

// L-11: with one kubelet frozen, no other server goes on to the new leaf, and the
// node is named; when it thaws all is done.
func TestASwapWaitsForAKubeletThatIsFrozen(t *testing.T) {
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	old, swapped := first.data(t), second.data(t)
	b := newBench(t, old)
	b.settle("the first certificate")
	b.frozen = 1
	b.put(swapped)
	for range 20 {
		b.look()
		b.kubelets()
	}
	if got := b.serving(old); len(got) != 3 {
		t.Errorf("only servers %v still serve the old leaf", got)
	}
	if c := b.ready(); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "step 1") || !strings.Contains(c.Message, "c-00001") {
		t.Errorf("TLSReady is %+v", c)
	}
	b.clock = b.clock.Add(3 * time.Minute)
	b.look()
	if c := b.ready(); c.Reason != v1alpha1.ReasonTLSNotServed || !strings.Contains(c.Message, "c-00001: the kubelet has not refreshed its files yet") {
		t.Errorf("after three minutes TLSReady is %+v", c)
	}
	b.frozen = -1
	b.settle("the swap")
	if got := b.serving(swapped); len(got) != 3 {
		t.Errorf("only servers %v serve the new leaf", got)
	}
}

// A bad edit reaches no server, and what was loaded by hand is undone.
func TestServersKeepWhatWasChecked(t *testing.T) {
	first := newAuthority(t, "first")
	old := first.data(t)
	b := newBench(t, old)
	b.settle("the first certificate")
	for name, change := range map[string]func(map[string][]byte){
		v1alpha1.ReasonTLSInvalid:     func(d map[string][]byte) { delete(d, "ca.crt") },
		v1alpha1.ReasonTLSChainBroken: func(d map[string][]byte) { d["ca.crt"] = newAuthority(t, "elsewhere").pem() },
	} {
		bad := first.data(t)
		change(bad)
		b.put(bad)
		for range 3 {
			b.look()
			b.kubelets()
		}
		if c := b.ready(); c.Reason != name {
			t.Errorf("TLSReady is %+v, want reason %s", c, name)
		}
		if got := b.serving(old); len(got) != 3 {
			t.Errorf("%s: servers %v keep their certificate", name, got)
		}
	}
	b.put(old)
	b.settle("the good one again")

	s := b.servers[2]
	foreign := first.data(t)
	s.mu.Lock()
	s.disk["ca-x.crt"], s.disk["tls-x.crt"], s.disk["tls-x.key"] = foreign["ca.crt"], foreign[corev1.TLSCertKey], foreign[corev1.TLSPrivateKeyKey]
	s.mu.Unlock()
	if err := s.load([][2]string{{"tls-ca-cert-file", "ca-x.crt"}, {"tls-cert-file", "tls-x.crt"}, {"tls-key-file", "tls-x.key"}}); err != nil {
		t.Fatal(err)
	}
	b.look()
	if got := b.serving(old); len(got) != 3 {
		t.Errorf("only servers %v serve the Secret's leaf after one was told another by hand", got)
	}
}
