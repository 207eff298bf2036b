//go:build e2e

package suite

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// encrypted is how valkey-cli reaches a server from within its own pod, whose
// address no certificate is for.
var encrypted = []string{"--tls", "--insecure"}

// verified is how an application's valkey-cli reaches the cluster.
var verified = []string{"--tls", "--cacert", "/secret/ca.crt"}

// The documented manifest makes a cluster that speaks TLS on every path.
func TestTLSClusterSpeaksNothingElse(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 7)
	s.Create(s.TLSSecret("my-cluster-tls", harness.NewAuthority(t), s.Names("my-cluster")...))
	manifest := `apiVersion: valkey.gomomento.com/v1alpha1
kind: ValkeyCluster
metadata:
  name: my-cluster
  namespace: ` + s.Name + `
spec:
  configRef: standard
  shards: 3
  replicasPerShard: 1
  tls:
    secretRef: my-cluster-tls
`
	if r := s.RunKubectl(t.Context(), manifest, "apply", "-f", "-"); r.Code != 0 {
		t.Fatal(r)
	}
	s.WaitActive("my-cluster")
	servers := s.WaitFormed("my-cluster", 3, 1, encrypted...)
	s.WaitCondition("my-cluster", v1alpha1.ConditionTLSReady, metav1.ConditionTrue, v1alpha1.ReasonTLSServed)
	c := s.Get("my-cluster")
	if c.Status.TLS == nil || c.Status.TLS.NotAfter == nil || len(c.Status.TLS.Fingerprint) != 64 || len(c.Status.TLS.Nodes) != 6 {
		t.Errorf("status.tls is %+v", c.Status.TLS)
	}
	for _, m := range servers[0].Members {
		if suffix := ".my-cluster." + s.Name + ".svc.cluster.local"; !strings.HasSuffix(m.Hostname, suffix) {
			t.Errorf("member %s announces %q, want a name that ends in %s", m.ID, m.Hostname, suffix)
		}
	}
	s.StartClient("my-cluster-tls")
	s.WriteKeys("my-cluster", 100, verified...)
	s.WantKeys("my-cluster", 100, verified...)
	name := "my-cluster." + s.Name + ".svc.cluster.local"
	for _, port := range []string{"6379", "16379"} {
		if out, err := s.CLI("", "-h", name, "-p", port, "PING"); err == nil {
			t.Errorf("port %s answers in plaintext: %q", port, out)
		}
	}
	if r := s.Valkey("status", "my-cluster"); r.Code != 0 || harness.Contains(r.Stdout, "my-cluster-tls") != nil {
		t.Errorf("status: %s", r)
	}
}

// L-07: a Secret that is missing or can't be used makes the cluster Invalid, with
// the reason; nothing is made from it; the right one is noticed by itself.
func TestUnusableTLSSecretIsNamedAndHealsByItself(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 2)
	authority := harness.NewAuthority(t)
	c := s.Cluster("c", 2, 0)
	c.Spec.TLS = &v1alpha1.TLS{SecretRef: "cert"}
	s.Create(c)
	waitInvalid(s, v1alpha1.ReasonTLSSecretNotFound, "cert", s.Name)

	names := s.Names("c")
	s.Create(s.TLSSecret("cert", authority, names[0], "c.elsewhere.svc.cluster.local"))
	waitInvalid(s, v1alpha1.ReasonTLSInvalid, "cert", names[1])
	if n := len(s.Nodes("c")) + len(s.Pods("c")); n > 0 {
		t.Errorf("%d nodes and pods were made with a Secret that can't be used", n)
	}
	good := s.TLSSecret("cert", authority, names...)
	replace(t, s, good)
	s.WaitActive("c")
	s.WaitFormed("c", 2, 0, encrypted...)

	// A bad edit reaches no server, and a cluster that was Active is so again.
	bad := good.DeepCopy()
	bad.Data[corev1.TLSPrivateKeyKey] = s.TLSSecret("other", authority, names...).Data[corev1.TLSPrivateKeyKey]
	replace(t, s, bad)
	waitInvalid(s, v1alpha1.ReasonTLSInvalid, "cert", "key")
	s.Delete(good)
	waitInvalid(s, v1alpha1.ReasonTLSSecretNotFound, "cert")
	if n := len(s.Pods("c")); n != 2 {
		t.Errorf("%d of 2 pods are left without the Secret", n)
	}
	good.ResourceVersion, good.UID = "", ""
	s.Create(good)
	s.WaitActive("c")
	s.WaitFormed("c", 2, 0, encrypted...)
	s.WaitEvents("c", v1alpha1.ReasonTLSSecretNotFound, 2) // once each time
}

func replace(t *testing.T, s *harness.Space, secret *corev1.Secret) {
	t.Helper()
	secret.ResourceVersion = ""
	if err := s.Client.Update(t.Context(), secret); err != nil {
		t.Fatalf("replace Secret %s: %v", secret.Name, err)
	}
}

func waitInvalid(s *harness.Space, reason string, words ...string) {
	s.Eventually("the cluster is Invalid with reason "+reason, harness.ActiveWithin, func() error {
		c := s.Get("c")
		if c.Status.State != v1alpha1.StateInvalid {
			return fmt.Errorf("state is %s: %s", c.Status.State, c.Status.Message)
		}
		got := harness.Condition(c, v1alpha1.ConditionTLSReady)
		if got.Status != metav1.ConditionFalse || got.Reason != reason {
			return fmt.Errorf("TLSReady is %s: %s: %s", got.Status, got.Reason, got.Message)
		}
		if err := harness.Contains(got.Message, words...); err != nil {
			return err
		}
		return harness.Contains(c.Status.Message, words...)
	})
}
