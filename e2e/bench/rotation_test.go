//go:build e2e

package bench

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// encrypted are the arguments of valkey-cli in a pod of a TLS cluster.
var encrypted = []string{"--tls", "--insecure"}

// BenchmarkRotation changes the certificate of a TLS cluster of 3 shards with a
// replica each in every way, while the writer writes, and measures from the change
// of the Secret until every server has the new leaf, by its own word. Then it times
// verify-tls on the six nodes.
func BenchmarkRotation(b *testing.B) {
	b.ReportMetric(0, "ns/op")
	s := &subject{b: b, Space: harness.Start(b).Space(b, 0)}
	authorities := []*harness.Authority{harness.NewAuthority(b), harness.NewAuthority(b), harness.NewAuthority(b)}
	issue := func(a *harness.Authority, bundle ...*harness.Authority) map[string][]byte {
		data := s.TLSSecret("cert", a, s.Names("c")...).Data
		if len(bundle) > 0 {
			data["ca.crt"] = nil
			for _, other := range bundle {
				data["ca.crt"] = append(data["ca.crt"], s.TLSSecret("x", other, s.Names("c")...).Data["ca.crt"]...)
			}
		}
		return data
	}
	secret := s.TLSSecret("cert", authorities[0], s.Names("c")...)
	s.Create(secret)
	// The writer trusts all that come.
	trusted := s.TLSSecret("trusted", authorities[0], s.Names("c")...)
	trusted.Data = issue(authorities[0], authorities...)
	s.Create(trusted)
	c := s.Cluster("c", 3, 1)
	c.Spec.TLS = &v1alpha1.TLS{SecretRef: "cert"}
	s.Create(c)
	s.WaitActive("c")
	s.WaitFormed("c", 3, 1, encrypted...)
	s.WaitCondition("c", v1alpha1.ConditionTLSReady, metav1.ConditionTrue, v1alpha1.ReasonTLSServed)
	s.writer = s.StartTLSWriter("c", "trusted", "--ranges", harness.Ranges(3))
	before := s.Pods("c")

	var leaves []time.Duration
	for range 5 {
		leaves = append(leaves, s.rotate("leaf", secret, issue(authorities[0])))
	}
	rows := []string{fmt.Sprintf("%-34s median of 5 %5.1f s (%s)", "a new leaf of the same CA", median(leaves).Seconds(), seconds(leaves))}
	for _, step := range []struct {
		name string
		data map[string][]byte
	}{
		{"a leaf of another CA, both CAs", issue(authorities[1], authorities[0], authorities[1])},
		{"the other CA alone, another leaf", issue(authorities[1])},
		{"a straight swap to a third CA", issue(authorities[2])},
	} {
		rows = append(rows, fmt.Sprintf("%-34s %5.1f s", step.name, s.rotate(step.name, secret, step.data).Seconds()))
	}
	rows = append(rows, fmt.Sprintf("%-34s %5.1f s", "a Secret of another name", s.rename(s.TLSSecret("renamed", authorities[2], s.Names("c")...)).Seconds()))
	if now := s.Pods("c"); len(now) != len(before) || slices.ContainsFunc(now, func(p corev1.Pod) bool {
		return !slices.ContainsFunc(before, func(q corev1.Pod) bool { return p.UID == q.UID })
	}) {
		b.Error("a pod was replaced")
	}
	start := time.Now()
	if r := s.Valkey("verify-tls", "c"); r.Code != 0 {
		b.Error(r)
	}
	verified := time.Since(start)
	rows = append(rows, fmt.Sprintf("%-34s %5.1f s", "verify-tls of six nodes", verified.Seconds()))
	r := s.end(false)
	for _, w := range r.Windows {
		rows = append(rows, fmt.Sprintf("%-34s %d writes, %d failed, longest gap %.0f ms", w.Name, w.Writes, w.Failed, w.GapMs))
	}
	b.ReportMetric(median(leaves).Seconds(), "s/leaf")
	b.ReportMetric(verified.Seconds(), "s/verify-tls")
	printRows("Rotation on 3×1 under load, until every server has it", rows...)
}

// rotate changes the Secret and returns after how long every server has its leaf.
func (s *subject) rotate(name string, secret *corev1.Secret, data map[string][]byte) time.Duration {
	s.b.Helper()
	s.writer.Mark(name)
	secret.ResourceVersion, secret.Data = "", data
	start := time.Now()
	if err := s.Client.Update(s.b.Context(), secret); err != nil {
		s.b.Fatalf("change the Secret: %v", err)
	}
	return s.served(start, data)
}

// rename makes the cluster use a new Secret and returns after how long every server
// has its leaf.
func (s *subject) rename(secret *corev1.Secret) time.Duration {
	s.b.Helper()
	s.writer.Mark("another name")
	s.Create(secret)
	start := time.Now()
	s.Edit("c", func(spec *v1alpha1.ValkeyClusterSpec) { spec.TLS.SecretRef = secret.Name })
	return s.served(start, secret.Data)
}

// served returns how long after the start every server had the leaf.
func (s *subject) served(start time.Time, data map[string][]byte) time.Duration {
	s.b.Helper()
	block, _ := pem.Decode(data[corev1.TLSCertKey])
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		s.b.Fatal(err)
	}
	var at time.Duration
	s.Eventually("every server has the leaf", time.Minute, func() error {
		for _, pod := range s.Pods("c") {
			out, err := s.Exec(s.b.Context(), s.Name, pod.Name, "", append([]string{"valkey-cli"}, append(encrypted, "INFO", "tls")...)...)
			if err != nil {
				return err
			}
			if !strings.Contains(out, fmt.Sprintf("tls_server_cert_serial:%X", leaf.SerialNumber.Bytes())) {
				return fmt.Errorf("pod %s has another", pod.Name)
			}
		}
		at = time.Since(start)
		return nil
	})
	s.WaitCondition("c", v1alpha1.ConditionTLSReady, metav1.ConditionTrue, v1alpha1.ReasonTLSServed)
	return at
}
