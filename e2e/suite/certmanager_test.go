//go:build e2e

package suite

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
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

// The documented way with cert-manager, by its own controllers: what the plugin
// prints is issued, the cluster serves it, and each renewal too, of the leaf by the
// same CA twice and then of the CA itself.
func TestCertManagerIssuesAndRenews(t *testing.T) {
	t.Parallel()
	e := harness.Start(t)
	if !e.Local {
		e.CannotCheck(t, "the walkthrough with cert-manager")
		return
	}
	audit, _ := e.Audit(t, "who writes the Secret of cert-manager")
	mark, err := audit.Mark()
	if err != nil {
		t.Fatal(err)
	}
	s := e.Space(t, 7)
	s.StartCertManager()
	manifests := s.Valkey("certificate", "c")
	if manifests.Code != 0 {
		t.Fatal(manifests)
	}
	// That a kind is established does not mean that it is listed yet.
	s.Eventually("the manifests are applied", time.Minute, func() error {
		if r := s.RunKubectl(t.Context(), manifests.Stdout, "apply", "-f", "-"); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	if r := s.Kubectl("wait", "--for=condition=Ready", "certificate/c-tls", "--timeout=2m"); r.Code != 0 {
		t.Fatal(r)
	}
	first := issued(t, s, nil)

	r := s.Valkey("create", "c", "--config", harness.ConfigName, "--shards", "3", "--replicas", "1", "--tls-secret", "c-tls", "--wait", "--timeout", "3m")
	if r.Code != 0 || r.Stderr != "" {
		t.Fatal(r)
	}
	s.WaitActive("c")
	s.WaitFormed("c", 3, 1, encrypted...)
	s.WaitCondition("c", v1alpha1.ConditionTLSReady, metav1.ConditionTrue, v1alpha1.ReasonTLSServed)
	if r := s.Valkey("verify-tls", "c"); r.Code != 0 || !strings.Contains(r.Stdout, "DNS:"+s.Names("c")[0]+", issued by CN="+s.Name+"-valkey-ca") {
		t.Fatal(r)
	}
	s.StartClient("c-tls")
	s.Eventually("a server answers by the name of the Service", time.Minute, func() error {
		if out, err := s.CLI("", append([]string{"-h", s.Names("c")[0]}, append(verified, "PING")...)...); err != nil || out != "PONG\n" {
			return fmt.Errorf("PING through the Service: %q, %w", out, err)
		}
		return nil
	})
	before := s.Pods("c")
	connections := s.Connect(before, encrypted...)

	renew := func(what string, last *corev1.Secret) *corev1.Secret {
		t.Helper()
		s.Renew("c-tls")
		secret := issued(t, s, last)
		if r := s.Valkey("verify-tls", "c", "--wait"); r.Code != 0 {
			t.Errorf("%s: %s", what, r)
		}
		waitServed(t, s, what, secret)
		return secret
	}
	second := renew("the first renewal", first)
	third := renew("the second renewal", second)

	// The next leaf comes with the new CA and without the old one: a straight swap.
	s.Renew("valkey-ca")
	fourth := renew("the renewal after that of the CA", third)
	if bytes.Equal(third.Data["ca.crt"], fourth.Data["ca.crt"]) {
		t.Error("the renewal of the CA left ca.crt as it was")
	}
	if err := connections.Steady(); err != nil {
		t.Error(err)
	}
	wantSamePods(t, s, before)
	s.WaitFormed("c", 3, 1, encrypted...)
	writes, err := audit.Select(mark, s.Name, func(a harness.AuditEntry) bool {
		return a.User.Username == harness.ManagerUser && a.Writes() && a.ObjectRef != nil &&
			a.ObjectRef.Namespace == s.Name && a.ObjectRef.Resource == "secrets" && a.ObjectRef.Name == "c-tls"
	})
	if err != nil || len(writes) > 0 {
		t.Errorf("the manager wrote the Secret of cert-manager: %v, %v", writes, err)
	}
}

// issued reads the Secret that cert-manager wrote and checks that it is what was
// asked for, with another key and another leaf than the last one.
func issued(t *testing.T, s *harness.Space, last *corev1.Secret) *corev1.Secret {
	t.Helper()
	var secret corev1.Secret
	get(t, s, "c-tls", &secret)
	leaf := leafOf(t, &secret)
	if _, ok := leaf.PublicKey.(*ecdsa.PublicKey); !ok || !slices.Equal(leaf.DNSNames, s.Names("c")) ||
		!slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth) || !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) {
		t.Errorf("the leaf has a %T for names %v and usages %v", leaf.PublicKey, leaf.DNSNames, leaf.ExtKeyUsage)
	}
	if secret.Type != corev1.SecretTypeTLS || len(secret.Data["ca.crt"]) == 0 {
		t.Errorf("the Secret has type %s and a ca.crt of %d bytes", secret.Type, len(secret.Data["ca.crt"]))
	}
	if last != nil {
		for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
			if bytes.Equal(last.Data[key], secret.Data[key]) {
				t.Errorf("the renewal left %s as it was", key)
			}
		}
		// cert-manager may make a CA twice when it begins, so that only the leaf that is
		// asked for later is sure to be of the one that stays.
		var ca corev1.Secret
		get(t, s, "valkey-ca-keypair", &ca)
		if !bytes.Equal(secret.Data["ca.crt"], ca.Data[corev1.TLSCertKey]) {
			t.Error("the renewed leaf comes with another CA than there is")
		}
	}
	return &secret
}
