//go:build e2e

package suite

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/suite/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/checklist"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/verifytls"
)

// verifyWithin is how long verify-tls may take for six nodes that are well.
const verifyWithin = 5 * time.Second

// The plugin proves a TLS cluster from outside Kubernetes, and names what is wrong.
func TestVerifyTLSFromTheHost(t *testing.T) {
	t.Parallel()
	s := harness.Start(t).Space(t, 7)
	if r := s.Valkey("certificate", "c", "--self-signed", "--apply"); r.Code != 0 || r.Stdout != "secret/c-tls created\n" {
		t.Fatal(r)
	}
	r := s.Valkey("create", "c", "--config", harness.ConfigName, "--shards", "3", "--replicas", "1", "--tls-secret", "c-tls", "--wait", "--timeout", "3m")
	if r.Code != 0 || r.Stderr != "" {
		t.Fatal(r)
	}
	s.WaitActive("c")

	t.Run("a sound cluster", func(t *testing.T) { soundCluster(t, s) })
	t.Run("without permissions", func(t *testing.T) { withoutPermissions(t, s) })
	t.Run("another CA", func(t *testing.T) {
		other := filepath.Join(t.TempDir(), "ca.crt")
		if err := os.WriteFile(other, s.TLSSecret("x", harness.NewAuthority(t), "x").Data["ca.crt"], 0o600); err != nil {
			t.Fatal(err)
		}
		report := reported(t, s.Valkey("verify-tls", "c", "--ca-file", other, "-o", "json"), 1)
		wantRows(t, report, checklist.Failed, "handshake", 6, "not signed by a CA in ca.crt")
	})
	t.Run("a rogue pod", func(t *testing.T) { roguePod(t, s) })
	t.Run("a bad edit of the Secret", func(t *testing.T) { badEdit(t, s) })
}

func reported(t *testing.T, r harness.Result, code int) verifytls.Report {
	t.Helper()
	var report verifytls.Report
	if err := json.Unmarshal([]byte(r.Stdout), &report); err != nil || r.Code != code {
		t.Fatalf("want exit code %d and a report: %v\n%s", code, err, r)
	}
	return report
}

// wantRows wants a check to have a result at so many places, for a reason.
func wantRows(t *testing.T, report verifytls.Report, result, check string, places int, reason string) {
	t.Helper()
	n := 0
	for _, row := range report.Checks {
		if row.Check == check && row.Result == result && strings.Contains(row.Reason, reason) {
			n++
		}
	}
	if n != places {
		t.Errorf("%s %s at %d places because of %q, want %d: %+v", check, result, n, reason, places, report.Checks)
	}
}

func soundCluster(t *testing.T, s *harness.Space) {
	started := time.Now()
	text := s.Valkey("verify-tls", "c")
	took := time.Since(started)
	if text.Code != 0 || text.Stderr != "" || !strings.Contains(text.Stdout, " 0 failed, 1 skipped") {
		t.Fatal(text)
	}
	t.Logf("verify-tls took %s for 6 nodes\n%s", took, text.Stdout)
	if took > verifyWithin {
		t.Errorf("it took %s, want at most %s", took, verifyWithin)
	}
	report := reported(t, s.Valkey("verify-tls", "c", "--wait", "-o", "json"), 0)
	for _, row := range report.Checks {
		if row.Result != checklist.Passed && row.Check != "secret-external-names" {
			t.Errorf("%+v", row)
		}
	}
	for _, check := range []string{"handshake", "service-name", "served-leaf", "answer", "no-client-certificate", "foreign-ca", "no-plaintext", "bus", "replication"} {
		wantRows(t, report, checklist.Passed, check, 6, "")
	}
	wantRows(t, report, checklist.Passed, "client-path", 3, "reached c-")
}

// withoutPermissions is as a ServiceAccount that may see the cluster and nothing
// else.
func withoutPermissions(t *testing.T, s *harness.Space) {
	s.Create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Name, Name: "viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "valkey-view"},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "viewer"}},
	})
	ca := filepath.Join(t.TempDir(), "ca.crt")
	var secret corev1.Secret
	get(t, s, "c-tls", &secret)
	if err := os.WriteFile(ca, secret.Data["ca.crt"], 0o600); err != nil {
		t.Fatal(err)
	}
	report := reported(t, s.Valkey("verify-tls", "c", "--ca-file", ca, "-o", "json", "--as", "viewer"), 1)
	wantRows(t, report, checklist.Failed, "secret", 1, "needs get secrets in namespace "+s.Name)
	wantRows(t, report, checklist.Failed, "reachable", 6, "needs create pods/portforward in namespace "+s.Name)
}

// roguePod joins the Service by its labels. What listens in it is a server without
// TLS.
func roguePod(t *testing.T, s *harness.Space) {
	pods := s.Pods("c")
	rogue := pods[0].DeepCopy()
	rogue.ObjectMeta = metav1.ObjectMeta{Namespace: s.Name, Name: "rogue", Labels: map[string]string{
		v1alpha1.LabelName: v1alpha1.ApplicationName, v1alpha1.LabelInstance: "c",
	}}
	container := &rogue.Spec.Containers[0]
	container.Command, container.Args = []string{"valkey-server", "--port", "6379", "--save", "", "--protected-mode", "no", "--dir", "/tmp"}, nil
	container.LivenessProbe, container.Lifecycle, container.VolumeMounts = nil, nil, []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}}
	rogue.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	rogue.Spec.NodeName, rogue.Spec.Hostname, rogue.Spec.Subdomain, rogue.Spec.ReadinessGates = "", "", "", nil
	rogue.Spec.TopologySpreadConstraints = nil
	rogue.Status = corev1.PodStatus{}
	s.Create(rogue)
	s.Eventually("the rogue pod runs", time.Minute, func() error {
		var pod corev1.Pod
		get(t, s, "rogue", &pod)
		if pod.Status.Phase != corev1.PodRunning {
			return harness.Contains(string(pod.Status.Phase), "Running")
		}
		return nil
	})
	var report verifytls.Report
	s.Eventually("the rogue server answers", time.Minute, func() error {
		report = reported(t, s.Valkey("verify-tls", "c", "-o", "json"), 1)
		if !slices.ContainsFunc(report.Checks, func(r checklist.Row) bool { return r.Check == "no-plaintext" && r.Result == checklist.Failed }) {
			return harness.Contains("", "a plaintext answer")
		}
		return nil
	})
	for _, row := range report.Checks {
		if row.Result == checklist.Failed && row.Where != "rogue" {
			t.Errorf("%+v", row)
		}
	}
	wantRows(t, report, checklist.Failed, "no-plaintext", 1, "+PONG")
	s.Delete(rogue)
	s.Eventually("the rogue pod is gone", time.Minute, func() error {
		if slices.ContainsFunc(s.Pods("c"), func(p corev1.Pod) bool { return p.Name == "rogue" }) {
			return harness.Contains("", "no rogue pod")
		}
		return nil
	})
}

// badEdit puts a certificate without the wildcard into the Secret: the cluster is
// Invalid, and no node serves it.
func badEdit(t *testing.T, s *harness.Space) {
	bad := s.TLSSecret("c-tls", harness.NewAuthority(t), s.Names("c")[0])
	replace(t, s, bad)
	s.Eventually("the cluster is Invalid", time.Minute, func() error {
		if c := s.Get("c"); c.Status.State != v1alpha1.StateInvalid {
			return harness.Contains(string(c.Status.State), "Invalid")
		}
		return nil
	})
	report := reported(t, s.Valkey("verify-tls", "c", "-o", "json"), 1)
	wantRows(t, report, checklist.Failed, "state", 1, "the cluster is Invalid")
	wantRows(t, report, checklist.Failed, "secret-names", 1, "lacks the names "+s.Names("c")[1])
	wantRows(t, report, checklist.Failed, "served-leaf", 6, "shows the leaf")
	block, _ := pem.Decode(bad.Data[corev1.TLSCertKey])
	if block == nil {
		t.Fatal("the Secret holds no PEM")
	}
	if leaf, err := x509.ParseCertificate(block.Bytes); err != nil || report.Certificate == nil || report.Certificate.Subject != leaf.Subject.String() {
		t.Errorf("the report is about %+v: %v", report.Certificate, err)
	}
}

func get(t *testing.T, s *harness.Space, name string, obj client.Object) {
	t.Helper()
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: s.Name, Name: name}, obj); err != nil {
		t.Fatalf("read %T %s: %v", obj, name, err)
	}
}
