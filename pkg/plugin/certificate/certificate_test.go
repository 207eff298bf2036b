package certificate

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

const service = "demo.team-a.svc.cluster.local"

func build(c client.WithWatch) plugintest.Build {
	return func(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams) *cobra.Command {
		return (&Options{access: access, flags: flags, streams: streams, clock: clocktesting.NewFakePassiveClock(plugintest.Now), client: c}).command()
	}
}

func run(t *testing.T, c client.WithWatch, in io.Reader, args ...string) (out, errOut string, code int) {
	t.Helper()
	plugintest.Kubeconfig(t)
	s := plugintest.Start(t, build(c), in, false, append([]string{"demo"}, args...)...)
	code = s.Wait()
	return s.Out.String(), s.ErrOut.String(), code
}

// withTLS is a cluster that names a Secret, in another domain, with outside names.
func withTLS() *v1alpha1.ValkeyCluster {
	f := plugintest.Active("demo", 2, 1)
	f.Cluster.Spec.TLS = &v1alpha1.TLS{SecretRef: "my-cluster-tls"}
	f.Cluster.Spec.ExternalAccess = &v1alpha1.ExternalAccess{Enabled: true, HostnamePrefix: "shard", Domain: "valkey.example.com"}
	f.Cluster.Status.Endpoint = "demo.team-a.svc.kube.prod:6379"
	return f.Cluster
}

func TestManifestsForCertManager(t *testing.T) {
	for name, tt := range map[string]struct {
		objects []client.Object
		args    []string
	}{
		"private-ca.yaml":        {nil, nil},
		"issuer.yaml":            {nil, []string{"--issuer", "corp-ca", "--issuer-kind", "ClusterIssuer"}},
		"existing-cluster.yaml":  {[]client.Object{withTLS()}, []string{"--issuer", "valkey-ca-issuer"}},
		"private-ca.json":        {nil, []string{"-o", "json"}},
		"names-and-lifetime.yml": {nil, []string{"--issuer", "i", "--dns-name", "a.example.com", "--dns-name", "b.example.com", "--secret-name", "s", "--duration", "720h", "--renew-before", "240h30m", "--cluster-domain", "kube.prod"}},
	} {
		out, errOut, code := run(t, plugintest.Client(tt.objects...), strings.NewReader(""), tt.args...)
		if code != exit.OK || errOut != "" {
			t.Errorf("%s: exit %d, %q", name, code, errOut)
		}
		plugintest.Golden(t, name, out)
	}
}

// The names that are asked for are those that are checked.
func TestTheCertificateAskedForHasTheNamesThatAreChecked(t *testing.T) {
	out, _, _ := run(t, plugintest.Client(withTLS()), strings.NewReader(""), "--issuer", "i")
	var object struct {
		Spec struct {
			SecretName string   `json:"secretName"`
			DNSNames   []string `json:"dnsNames"`
			Usages     []string `json:"usages"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(out), &object); err != nil {
		t.Fatal(err)
	}
	names := certs.Names{Service: "demo.team-a.svc.kube.prod", External: []string{"shard-0.valkey.example.com", "shard-1.valkey.example.com"}}
	if !slices.Equal(object.Spec.DNSNames, names.DNSNames()) || object.Spec.SecretName != "my-cluster-tls" ||
		!slices.Equal(object.Spec.Usages, []string{"server auth", "client auth"}) {
		t.Errorf("%+v", object.Spec)
	}
}

func secretIn(t *testing.T, text string) *corev1.Secret {
	t.Helper()
	var s corev1.Secret
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return &s
}

func sound(t *testing.T, s *corev1.Secret) {
	t.Helper()
	if _, fatal, warnings := certs.Check(s.Data, string(s.Type), certs.Names{Service: service}, plugintest.Now); len(fatal)+len(warnings) > 0 {
		t.Errorf("fatal %v, warnings %v", fatal, warnings)
	}
}

func TestASecretForDevelopmentIsSound(t *testing.T) {
	out, errOut, code := run(t, plugintest.Client(), strings.NewReader(""), "--self-signed")
	if code != exit.OK || errOut != "" {
		t.Fatalf("exit %d, %q", code, errOut)
	}
	s := secretIn(t, out)
	if s.Name != "demo-tls" || s.Namespace != plugintest.Namespace || s.Kind != "Secret" || strings.Contains(out, "creationTimestamp") {
		t.Errorf("%s", out)
	}
	sound(t, s)
}

func TestASecretForDevelopmentIsAppliedOnceAndReplacedOnlyWhenAsked(t *testing.T) {
	c := plugintest.Client()
	stored := func() *corev1.Secret {
		var s corev1.Secret
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: plugintest.Namespace, Name: "demo-tls"}, &s); err != nil {
			return nil
		}
		return &s
	}
	for _, mode := range []string{"client", "server"} {
		if out, errOut, code := run(t, c, strings.NewReader(""), "--self-signed", "--apply", "--dry-run="+mode); code != exit.OK || errOut != "" || !strings.HasPrefix(out, "secret/demo-tls created (") {
			t.Errorf("%s: exit %d, %q, %q", mode, code, out, errOut)
		}
		if stored() != nil {
			t.Fatalf("--dry-run=%s wrote", mode)
		}
	}
	if out, errOut, code := run(t, c, strings.NewReader(""), "--self-signed", "--apply"); code != exit.OK || out != "secret/demo-tls created\n" || errOut != "" {
		t.Errorf("exit %d, %q, %q", code, out, errOut)
	}
	first := stored()
	sound(t, first)
	if _, errOut, code := run(t, c, strings.NewReader(""), "--self-signed", "--apply"); code != exit.Failed || !strings.Contains(errOut, "--overwrite") {
		t.Errorf("exit %d, %q", code, errOut)
	}
	if !bytes.Equal(stored().Data["tls.crt"], first.Data["tls.crt"]) {
		t.Error("it was replaced without being asked")
	}
	if out, _, code := run(t, c, strings.NewReader(""), "--self-signed", "--apply", "--overwrite"); code != exit.OK || out != "secret/demo-tls configured\n" {
		t.Errorf("exit %d, %q", code, out)
	}
	if bytes.Equal(stored().Data["tls.crt"], first.Data["tls.crt"]) {
		t.Error("it was not replaced")
	}
	sound(t, stored())
}

func TestAFileIsCheckedAsTheManagerWould(t *testing.T) {
	data, err := certs.SelfSigned(certs.Names{Service: service}, plugintest.Now, defaultDuration)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := certs.SelfSigned(certs.Names{Service: "cache.team-a.svc.cluster.local"}, plugintest.Now, defaultDuration)
	if err != nil {
		t.Fatal(err)
	}
	manifest := func(data map[string][]byte, kind corev1.SecretType) string {
		text, err := yaml.Marshal(&corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Type: kind, Data: data})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	without := map[string][]byte{"tls.crt": data["tls.crt"], "tls.key": data["tls.key"]}
	all := string(data["tls.key"]) + string(data["tls.crt"]) + string(data["ca.crt"])
	for name, tt := range map[string]struct {
		text string
		code int
		want string
	}{
		"a Secret":                {manifest(data, corev1.SecretTypeTLS), exit.OK, " 0 failed"},
		"a Secret after others":   {"kind: ConfigMap\n---\n" + manifest(data, corev1.SecretTypeTLS), exit.OK, " 0 failed"},
		"a Secret of no use":      {manifest(foreign, corev1.SecretTypeTLS), exit.Failed, "lacks the names " + service},
		"one of another type":     {manifest(data, corev1.SecretTypeOpaque), exit.Failed, "must be kubernetes.io/tls"},
		"one without a CA":        {manifest(without, corev1.SecretTypeTLS), exit.Failed, "it has no ca.crt"},
		"PEM with everything":     {all, exit.OK, " 0 failed"},
		"PEM of the leaf alone":   {string(data["tls.crt"]), exit.OK, "it needs tls.key"},
		"PEM for another cluster": {string(foreign["tls.crt"]), exit.Failed, "lacks the names"},
		"garbage":                 {"hello", exit.Failed, "neither a Secret nor PEM"},
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, from := range []string{path, "-"} {
			out, errOut, code := run(t, plugintest.Client(), strings.NewReader(tt.text), "--check", from)
			if code != tt.code || !strings.Contains(out+errOut, tt.want) {
				t.Errorf("%s: exit %d, %s%s", name, code, out, errOut)
			}
			if strings.Contains(out+errOut, "PRIVATE KEY--") {
				t.Errorf("%s: the key is shown", name)
			}
		}
	}
	out, _, _ := run(t, plugintest.Client(), strings.NewReader(all), "--check", "-", "-o", "json")
	if !strings.Contains(out, `"check": "secret-names"`) || !strings.Contains(out, `"failed": 0`) {
		t.Errorf("%s", out)
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{"--apply"},
		{"--self-signed", "--overwrite"},
		{"--dry-run=server"},
		{"--self-signed", "--apply", "--dry-run=maybe"},
		{"--issuer", "i", "--self-signed"},
		{"--check", "f", "--issuer", "i"},
		{"--issuer-kind", "ClusterIssuer"},
		{"other"},
		{"--duration", "1s"},
		{"--renew-before", "3000h"},
		{"--secret-name", "demo-operator-tls"},
		{"-o", "name"},
		{"--cluster-domain", "_"},
	} {
		if out, errOut, code := run(t, plugintest.Client(), strings.NewReader(""), args...); code != exit.Usage || out != "" || !strings.HasPrefix(errOut, "error: ") {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, errOut)
		}
	}
}

func TestAClusterWithoutTLSIsToldApart(t *testing.T) {
	_, errOut, code := run(t, plugintest.Client(plugintest.Active("demo", 1, 0).Cluster), strings.NewReader(""))
	if code != exit.OK || !strings.HasPrefix(errOut, "note: cluster demo exists and has no TLS") {
		t.Errorf("exit %d, %q", code, errOut)
	}
}

func TestManifestsNeedNoAPIServer(t *testing.T) {
	plugintest.Kubeconfig(t)
	out, errOut, code := run(t, nil, strings.NewReader(""))
	if code != exit.OK || !strings.Contains(out, "- '*."+service+"'") || !strings.HasPrefix(errOut, "note: ") {
		t.Errorf("exit %d, %q, %q", code, out, errOut)
	}
}
