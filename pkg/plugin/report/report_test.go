package report

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// planted are secrets in every form and place that they may have.
var planted = map[string]string{
	"system password":      strings.Repeat("0123456789abcdef", 8),
	"hash":                 strings.Repeat("ab", 32),
	"hash in ACL file":     strings.Repeat("cd", 32),
	"plain in ACL file":    "Plain-Text-1",
	"requirepass":          "Require-Pass-2",
	"primaryauth":          "Primary-Auth-3",
	"setting":              "Key-File-Pass-4",
	"odd setting":          "Odd-Secret-5",
	"annotation":           "Annotation-Secret-6",
	"pod annotation":       "Pod-Annotation-7",
	"environment":          "Environment-8",
	"key":                  "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
	"url":                  "Url-Password-9",
	"bearer":               "abcdefghijklmnop.QRSTUV",
	"jwt":                  "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
	"json log":             "Json-Log-10",
	"quoted":               "two words 11",
	"auth command":         "Auth-Command-12",
	"argument":             "Argument-13",
	"event":                "Event-Secret-14",
	"secret":               "Secret-Object-15",
	"single quotes":        "single quoted 16",
	"two line key rest":    "q0Fg6Xx0secondline",
	"service annotation":   "Service-Annotation-17",
	"cluster's annotation": "Cluster-Annotation-18",
}

func fixture() []client.Object {
	f := plugintest.Active("demo", 1, 1)
	f.Cluster.Annotations = map[string]string{
		corev1.LastAppliedConfigAnnotation: `{"x":"` + planted["annotation"] + `"}`, "team.example.com/x": planted["cluster's annotation"],
		v1alpha1.AnnotationRequestPrefix + "restart": "abc123",
	}
	f.Cluster.Spec.PodAnnotations = map[string]string{"a.example.com/b": planted["pod annotation"]}
	f.Cluster.Spec.ExternalAccess = &v1alpha1.ExternalAccess{ServiceAnnotations: map[string]string{"lb.example.com/x": planted["service annotation"]}}
	f.Cluster.Spec.TLS = &v1alpha1.TLS{SecretRef: "demo-tls"}
	f.Cluster.Spec.ACL = []v1alpha1.ACLBinding{{Username: "app", PasswordHashes: []v1alpha1.PasswordHash{v1alpha1.PasswordHash(planted["hash"])}}}
	f.Nodes[0].Spec.ValkeySettings = map[string]v1alpha1.SettingValue{"tls-key-file-pass": v1alpha1.SettingValue(planted["setting"]), "maxmemory": "100mb", "my-secret": v1alpha1.SettingValue(planted["odd setting"])}
	f.ACL.Labels = map[string]string{v1alpha1.LabelInstance: "demo"}
	f.ACL.Data[objects.ACLFile] = "user app on #" + planted["hash in ACL file"] + " >" + planted["plain in ACL file"] + " ~* +@all\n"
	f.Pods[0].Spec.Containers[0].Env = []corev1.EnvVar{{Name: "X", Value: planted["environment"]}}
	f.Event("ValkeyCluster", "demo", corev1.EventTypeWarning, "StepFailed", "connect: password="+planted["event"], 0)
	settings := map[string]v1alpha1.SettingValue{"requirepass": v1alpha1.SettingValue(planted["requirepass"]), "maxmemory-policy": "allkeys-lru"}
	return append(append(f.Objects(), plugintest.Menu()...),
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: plugintest.Namespace, Name: "demo-x-config", Labels: map[string]string{v1alpha1.LabelInstance: "demo"}},
			Data:       map[string]string{"valkey.conf": "port 6379\nprimaryauth \"" + planted["primaryauth"] + "\"\nrequirepass " + planted["requirepass"] + "\n"},
		},
		&v1alpha1.ValkeyConfig{ObjectMeta: metav1.ObjectMeta{Name: "leaky"}, Spec: v1alpha1.ValkeyConfigSpec{Valkey: settings}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: plugintest.Namespace, Name: "demo-operator-auth", Annotations: map[string]string{"x": planted["secret"]}},
			Data:       map[string][]byte{"operator-password": []byte(planted["system password"])},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: plugintest.Namespace, Name: "demo-tls"}, Data: map[string][]byte{"tls.key": []byte(planted["key"])}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: kube.ManagerNamespace, Name: "valkey-operator-1"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "manager"}}}},
	)
}

// log is what a careless program might write.
func log(_ context.Context, _, pod, _ string, _ int64) ([]byte, error) {
	if strings.HasSuffix(pod, "operator-1") {
		return []byte(`{"level":"info","msg":"dialled 10.0.0.1:6379","password":"` + planted["json log"] + `"}` + "\n" +
			"GET https://user:" + planted["url"] + "@example.com/\nAuthorization: Bearer " + planted["bearer"] + "\n" + planted["jwt"] + "\n" +
			planted["system password"] + "\nmasterauth '" + planted["single quotes"] + "'\n"), nil
	}
	return []byte("* Server initialized\nrequirepass \"" + planted["quoted"] + "\"\nAUTH app " + planted["auth command"] + "\nvalkey-cli -a " + planted["argument"] + " PING\n" +
		"-----BEGIN PRIVATE KEY-----\n" + planted["key"] + "\n" + planted["two line key rest"] + "\n-----END PRIVATE KEY-----\n"), nil
}

func build(c client.Client, logs func(context.Context, string, string, string, int64) ([]byte, error)) plugintest.Build {
	return func(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams) *cobra.Command {
		return (&Options{access: access, flags: flags, streams: streams, clock: clocktesting.NewFakeClock(plugintest.Now), client: c, logs: logs}).command()
	}
}

func content(t *testing.T, path string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	take := func(name string, r io.Reader) {
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimPrefix(name, "valkey-report/")] = string(text)
	}
	if isZip(path) {
		archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			take(f.Name, r)
		}
		return out
	}
	compressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(compressed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		take(header.Name, archive)
	}
}

func TestAReportHoldsNoSecret(t *testing.T) {
	for _, name := range []string{"r.tar.gz", "r.zip"} {
		path := filepath.Join(t.TempDir(), name)
		out, errOut, code := plugintest.Run(t, build(plugintest.Client(fixture()...), log), false, "demo", "--file", path)
		if code != exit.OK || !strings.Contains(out, "secrets removed") {
			t.Fatalf("exit %d with %q, %q", code, out, errOut)
		}
		files := content(t, path)
		for file, text := range files {
			for what, secret := range planted {
				if strings.Contains(text, secret) {
					t.Errorf("%s: %s: %s is still there:\n%s", name, file, what, text)
				}
			}
		}
		for _, file := range []string{
			"cluster.yaml", "nodes.yaml", "pods.yaml", "configmaps.yaml", "events.yaml", "menu/configs.yaml", "secrets.txt", "plugin.json",
			"manager/pods.yaml", "logs/valkey-operator/valkey-operator-1-manager.log", "logs/team-a/demo-3fa2c-valkey.log",
		} {
			if files[file] == "" {
				t.Errorf("%s: %s is missing or empty", name, file)
			}
		}
	}
}

// What is no secret has to stay, or the report helps nobody.
func TestWhatHelpsStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.tar.gz")
	plugintest.Run(t, build(plugintest.Client(fixture()...), log), false, "demo", "--file", path)
	files := content(t, path)
	for file, words := range map[string][]string{
		"cluster.yaml":                      {"configRef: standard", "secretRef: demo-tls", "username: app", "NodesNotReady", "request-restart: abc123", "team.example.com/x"},
		"nodes.yaml":                        {"maxmemory: 100mb", "shardIndex: 0", "nodeID: 0000000000000000000000000000000000000abc"},
		"configmaps.yaml":                   {"user app on #(removed)", "port 6379", "~* +@all"},
		"menu/configs.yaml":                 {"maxmemory-policy: allkeys-lru", "name: leaky"},
		"events.yaml":                       {"reason: StepFailed"},
		"secrets.txt":                       {"demo-operator-auth", "demo-tls"},
		"logs/team-a/demo-3fa2c-valkey.log": {"Server initialized", "valkey-cli -a (removed) PING"},
		"logs/valkey-operator/valkey-operator-1-manager.log": {"dialled 10.0.0.1:6379", "https://(removed)@example.com/"},
	} {
		for _, word := range words {
			if word == "NodesNotReady" {
				word = "type: Ready"
			}
			if !strings.Contains(files[file], word) {
				t.Errorf("%s lacks %q:\n%s", file, word, files[file])
			}
		}
	}
}

func TestWhatMayNotBeReadIsListed(t *testing.T) {
	c := interceptor.NewClient(plugintest.Client(fixture()...), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*v1alpha1.ValkeyNodeList); ok {
				return c.List(ctx, list, opts...)
			}
			return plugintest.Forbidden("list", "things", plugintest.Namespace)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if _, ok := obj.(*v1alpha1.ValkeyCluster); ok {
				return c.Get(ctx, key, obj, opts...)
			}
			return plugintest.Forbidden("get", "secrets", plugintest.Namespace)
		},
	})
	path := filepath.Join(t.TempDir(), "r.zip")
	_, errOut, code := plugintest.Run(t, build(c, log), false, "demo", "-f", path)
	files := content(t, path)
	if code != exit.OK || !strings.Contains(errOut, "note: left out pods.yaml: pods can't be read: needs list pods in namespace team-a") {
		t.Errorf("exit %d with %q", code, errOut)
	}
	if files["cluster.yaml"] == "" || files["nodes.yaml"] == "" || !strings.Contains(files["missing.txt"], "menu/roles.yaml") {
		t.Errorf("the report holds %v", files)
	}
}

func TestFailures(t *testing.T) {
	there := filepath.Join(t.TempDir(), "there.zip")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"takes the name of one cluster": nil,
		"end its name in .tar.gz":       {"demo", "--file", "x.rar"},
		"--tail is 0":                   {"demo", "--tail", "0"},
		"exists already":                {"demo", "--file", there},
		"not found":                     {"other", "--file", filepath.Join(t.TempDir(), "x.zip")},
	} {
		_, errOut, code := plugintest.Run(t, build(plugintest.Client(fixture()...), log), false, args...)
		if code == exit.OK || !strings.Contains(errOut, want) {
			t.Errorf("%v: exit %d with %q, want %q", args, code, errOut, want)
		}
	}
}

func TestRedactionLeavesProseAlone(t *testing.T) {
	for _, text := range []string{
		"image valkey/valkey@sha256:" + strings.Repeat("0a", 32),
		"node " + strings.Repeat("0a", 20) + " 10.0.0.1:6379@16379 master - 0 1 1 connected 0-5460",
		"# Replication\nrole:master\nconnected_slaves:1",
		"slots 0-5460 -> 5461",
	} {
		if got := redact(text); got != text {
			t.Errorf("redaction changed it (-was +is):\n%s", cmp.Diff(text, got))
		}
	}
	if !slices.ContainsFunc(patterns, func(p pattern) bool { return p.find.MatchString("requirepass x") }) {
		t.Error("the patterns find nothing")
	}
}
