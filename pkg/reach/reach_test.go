package reach

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
)

// selfSigned is material whose leaf is its own CA.
func selfSigned(t *testing.T, names ...string) objects.TLSMaterial {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(90 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return objects.TLSMaterial{CA: certificate, Certificate: certificate, Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}
}

func userSecret(m objects.TLSMaterial) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "cert"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: m.Certificate, corev1.TLSPrivateKeyKey: m.Key, "ca.crt": m.CA},
	}
}

func encryptedCluster() *v1alpha1.ValkeyCluster {
	return &v1alpha1.ValkeyCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "u"},
		Spec:       v1alpha1.ValkeyClusterSpec{Shards: 2, TLS: &v1alpha1.TLS{SecretRef: "cert"}},
	}
}

// over is a Reach over some objects, and how often a Secret's data was read.
func over(all ...client.Object) (*Reach, *int) {
	reads := new(int)
	c := fake.NewClientBuilder().WithObjects(all...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*corev1.Secret); ok {
				*reads++
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}).Build()
	return &Reach{Metadata: c, Live: c, ClusterDomain: "cluster.local"}, reads
}

// L-07 and what else is wrong with a reference.
func TestASecretThatCannotBeUsedIsNamedWithWhatToDo(t *testing.T) {
	good := selfSigned(t, "c.n.svc.cluster.local", "*.c.n.svc.cluster.local")
	for name, c := range map[string]struct {
		change func(*v1alpha1.ValkeyCluster)
		secret *corev1.Secret
		reason string
		words  []string
	}{
		"good":    {secret: userSecret(good)},
		"missing": {reason: v1alpha1.ReasonTLSSecretNotFound, words: []string{"Secret cert", "namespace n", "create it"}},
		"missing under running nodes": {
			change: func(c *v1alpha1.ValkeyCluster) { c.Status.Nodes = []string{"c-0"} },
			reason: v1alpha1.ReasonTLSSecretNotFound, words: []string{"not replaced"},
		},
		"the manager's own": {
			change: func(c *v1alpha1.ValkeyCluster) { c.Spec.TLS.SecretRef = "c-operator-tls" },
			reason: v1alpha1.ReasonTLSInvalid, words: []string{"spec.tls.secretRef", "own copy"},
		},
		"a name that can't be": {
			change: func(c *v1alpha1.ValkeyCluster) { c.Spec.TLS.SecretRef = "other/cert" },
			reason: v1alpha1.ReasonTLSSecretNotFound, words: []string{"spec.tls.secretRef", "other/cert", "may not contain '/'"},
		},
		"other names": {secret: userSecret(selfSigned(t, "c.n.svc.cluster.local")), reason: v1alpha1.ReasonTLSInvalid, words: []string{"Secret cert", "*.c.n.svc.cluster.local"}},
	} {
		cluster := encryptedCluster()
		if c.change != nil {
			c.change(cluster)
		}
		var all []client.Object
		if c.secret != nil {
			all = append(all, c.secret)
		}
		r, _ := over(all...)
		wish, err := r.TLSWish(t.Context(), cluster, time.Now())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c.reason == "" {
			if wish.Invalid != nil || wish.Material.Leaf.Fingerprint == "" {
				t.Errorf("%s: %+v", name, wish.Invalid)
			}
			continue
		}
		if wish.Invalid == nil || wish.Invalid.Reason != c.reason {
			t.Errorf("%s: %+v", name, wish.Invalid)
			continue
		}
		for _, word := range c.words {
			if !strings.Contains(wish.Invalid.Message, word) {
				t.Errorf("%s: %q is missing in %q", name, word, wish.Invalid.Message)
			}
		}
	}
}

func TestHostnamesOfShardsThatTheLeafLacksAreWarnedAbout(t *testing.T) {
	cluster := encryptedCluster()
	cluster.Spec.ExternalAccess = &v1alpha1.ExternalAccess{Enabled: true, Domain: "example.com"}
	r, _ := over(userSecret(selfSigned(t, "c.n.svc.cluster.local", "*.c.n.svc.cluster.local", "shard-0.example.com")))
	wish, err := r.TLSWish(t.Context(), cluster, time.Now())
	if err != nil || wish.Invalid != nil {
		t.Fatal(err, wish.Invalid)
	}
	if len(wish.Warnings) != 1 || wish.Warnings[0].Reason != v1alpha1.ReasonTLSNameNotCovered || !strings.Contains(wish.Warnings[0].Message, "shard-1.example.com") ||
		strings.Contains(wish.Warnings[0].Message, "shard-0.") {
		t.Errorf("warnings are %+v", wish.Warnings)
	}
}

func TestASecretIsReadOnceForEachOfItsVersions(t *testing.T) {
	secret := userSecret(selfSigned(t, "x"))
	r, reads := over(secret)
	for range 3 {
		if _, err := r.Secret(t.Context(), "n", "cert"); err != nil {
			t.Fatal(err)
		}
	}
	if *reads != 1 {
		t.Errorf("it was read %d times", *reads)
	}
	next, err := r.Secret(t.Context(), "n", "cert")
	if err != nil {
		t.Fatal(err)
	}
	changed := next.DeepCopy()
	changed.Data["ca.crt"] = []byte("another")
	writer, ok := r.Live.(client.Client)
	if !ok {
		t.Fatal("the reader can't write")
	}
	if err := writer.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Secret(t.Context(), "n", "cert"); err != nil || string(got.Data["ca.crt"]) != "another" || *reads != 2 {
		t.Errorf("after a change: %v, read %d times", err, *reads)
	}
}

// A server of a cluster with TLS is dialled by its name, verified by the copy and by
// nothing else: without a copy by nobody.
func TestServersAreVerifiedByTheCopyOnly(t *testing.T) {
	cluster := encryptedCluster()
	node := &v1alpha1.ValkeyNode{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-00000"}}
	r, _ := over(userSecret(selfSigned(t, "x")))
	trust, err := r.Trust(t.Context(), cluster)
	if !errors.Is(err, ErrNoCopy) {
		t.Fatalf("without a copy: %v", err)
	}
	target := r.Target(cluster, trust, node, "10.0.0.1")
	if target.TLS == nil || target.TLS.RootCAs == nil || target.TLS.InsecureSkipVerify || target.Address != "c-00000.c.n.svc.cluster.local:6379" || target.PodIP != "10.0.0.1" {
		t.Errorf("without a copy the target is %+v", target)
	}
	copied := objects.TLSSecret(cluster, selfSigned(t, "y"))
	r, _ = over(copied)
	if trust, err = r.Trust(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	node.Status.Applied = &v1alpha1.Applied{Leaf: "served"}
	if target = r.Target(cluster, trust, node, "10.0.0.1"); len(target.KnownLeaves) != 2 || target.KnownLeaves[1] != "served" {
		t.Errorf("known leaves are %v", target.KnownLeaves)
	}
	copied = copied.DeepCopy()
	copied.OwnerReferences, copied.ResourceVersion = nil, ""
	var conflict *ConflictError
	r, _ = over(copied)
	if _, err := r.Trust(t.Context(), cluster); !errors.As(err, &conflict) {
		t.Errorf("a copy that is somebody else's: %v", err)
	}
}
