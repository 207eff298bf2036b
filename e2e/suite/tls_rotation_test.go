//go:build e2e

package suite

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// rotatedWithin is ten times what a rotation may take on a machine of its own.
const rotatedWithin = 50 * time.Second

// L-08, L-11: every way to another certificate reaches every node without a restart,
// and without a connection that drops.
func TestCertificatesRotateUnderOpenConnections(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 7)
	first, second, third := harness.NewAuthority(t), harness.NewAuthority(t), harness.NewAuthority(t)
	secret := s.TLSSecret("cert", first, s.Names("c")...)
	s.Create(secret)
	c := s.Cluster("c", 3, 1)
	c.Spec.TLS = &v1alpha1.TLS{SecretRef: "cert"}
	s.Create(c)
	s.WaitActive("c")
	s.WaitFormed("c", 3, 1, encrypted...)
	s.WaitCondition("c", v1alpha1.ConditionTLSReady, metav1.ConditionTrue, v1alpha1.ReasonTLSServed)
	s.StartClient("cert")
	before := s.Pods("c")
	connections := s.Connect(before, encrypted...)

	ca := func(authorities ...*harness.Authority) (out []byte) {
		for _, a := range authorities {
			out = append(out, s.TLSSecret("x", a, s.Names("c")...).Data["ca.crt"]...)
		}
		return out
	}
	change := func(what string, a *harness.Authority, bundle []byte) {
		t.Helper()
		secret.Data = s.TLSSecret("cert", a, s.Names("c")...).Data
		secret.Data["ca.crt"] = bundle
		replace(t, s, secret)
		waitServed(t, s, what, secret)
	}
	change("a leaf of the same CA", first, ca(first))
	change("a leaf of another CA with both CAs", second, ca(first, second))
	leaf := secret.Data
	secret.Data = map[string][]byte{corev1.TLSCertKey: leaf[corev1.TLSCertKey], corev1.TLSPrivateKeyKey: leaf[corev1.TLSPrivateKeyKey], "ca.crt": ca(second)}
	replace(t, s, secret)
	waitServed(t, s, "the new CA alone", secret)
	change("a straight swap to a third CA", third, ca(third))

	renamed := s.TLSSecret("renamed", third, s.Names("c")...)
	s.Create(renamed)
	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.TLS.SecretRef = "renamed" })
	waitServed(t, s, "a renamed Secret", renamed)

	if err := connections.Steady(); err != nil {
		t.Error(err)
	}
	wantSamePods(t, s, before)
	s.WaitFormed("c", 3, 1, encrypted...)
}

// L-05: an expired certificate is reported, the cluster is managed as before, and a
// renewed one gets to the servers that still have the expired one.
func TestAClusterWhoseCertificateExpiredIsManagedAndHealed(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 3)
	authority := harness.NewAuthority(t)
	secret := s.TLSSecret("cert", authority, s.Names("c")...)
	expiry := time.Now().Add(time.Minute)
	secret.Data = s.ShortLived(authority, expiry, s.Names("c")...)
	s.Create(secret)
	c := s.Cluster("c", 1, 1)
	c.Spec.TLS = &v1alpha1.TLS{SecretRef: "cert"}
	s.Create(c)
	s.WaitActive("c")
	s.WaitFormed("c", 1, 1, encrypted...)
	before := s.Pods("c")
	s.Eventually("the certificate is said to have expired", time.Until(expiry)+rotatedWithin, func() error {
		c := s.Get("c")
		if got := harness.Condition(c, v1alpha1.ConditionTLSReady); got.Status != metav1.ConditionFalse || got.Reason != v1alpha1.ReasonTLSExpired {
			return fmt.Errorf("TLSReady is %s: %s: %s", got.Status, got.Reason, got.Message)
		}
		return harness.Settled(c) // Active, and every node answers the manager
	})
	secret.Data = s.TLSSecret("cert", authority, s.Names("c")...).Data
	replace(t, s, secret)
	waitServed(t, s, "the renewed certificate", secret)
	wantSamePods(t, s, before)
	s.WaitFormed("c", 1, 1, encrypted...)
}

// waitServed waits until every server itself says that it has the leaf, and until the
// manager says so too.
func waitServed(t *testing.T, s *harness.Space, what string, secret *corev1.Secret) {
	t.Helper()
	serial := serialOf(t, secret)
	begin := time.Now()
	s.Eventually("every server has "+what, rotatedWithin, func() error {
		for _, pod := range s.Pods("c") {
			out, err := s.Exec(t.Context(), s.Name, pod.Name, "", append([]string{"valkey-cli"}, append(encrypted, "INFO", "tls")...)...)
			if err != nil {
				return err
			}
			if !strings.Contains(out, "tls_server_cert_serial:"+serial) {
				return fmt.Errorf("pod %s has another than %s: %s", pod.Name, serial, out)
			}
		}
		return nil
	})
	t.Logf("%s: on every server after %s", what, time.Since(begin).Round(100*time.Millisecond))
	s.Eventually("the manager says that every node serves "+what, rotatedWithin, func() error {
		c := s.Get("c")
		got := harness.Condition(c, v1alpha1.ConditionTLSReady)
		if got.Status != metav1.ConditionTrue || c.Status.TLS == nil || len(c.Status.TLS.Nodes) != len(s.Pods("c")) {
			return fmt.Errorf("TLSReady is %s: %s: %s; status.tls is %+v", got.Status, got.Reason, got.Message, c.Status.TLS)
		}
		return nil
	})
	t.Logf("%s: said by the manager after %s", what, time.Since(begin).Round(100*time.Millisecond))
}

// serialOf is the serial number of a Secret's leaf, as servers write it.
func serialOf(t *testing.T, secret *corev1.Secret) string {
	t.Helper()
	return fmt.Sprintf("%X", leafOf(t, secret).SerialNumber.Bytes())
}

func leafOf(t *testing.T, secret *corev1.Secret) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(secret.Data[corev1.TLSCertKey])
	if block == nil {
		t.Fatal("tls.crt holds no PEM")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

// wantSamePods fails the test if a pod was replaced or its server restarted.
func wantSamePods(t *testing.T, s *harness.Space, before []corev1.Pod) {
	t.Helper()
	had := map[string]bool{}
	for _, pod := range before {
		had[string(pod.UID)] = true
	}
	for _, pod := range s.Pods("c") {
		if !had[string(pod.UID)] {
			t.Errorf("pod %s was made meanwhile", pod.Name)
		}
		for _, status := range pod.Status.ContainerStatuses {
			if status.RestartCount > 0 {
				t.Errorf("the server of pod %s was restarted", pod.Name)
			}
		}
	}
}
