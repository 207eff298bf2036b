package create

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// tlsSecret holds a certificate for the names that is its own CA.
func tlsSecret(t *testing.T, name string, names ...string) *corev1.Secret {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: names,
		NotBefore: plugintest.Now.Add(-time.Hour), NotAfter: plugintest.Now.Add(90 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	leaf := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: plugintest.Namespace, Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{
			certs.CertificateKey: leaf,
			certs.PrivateKeyKey:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
			certs.CAKey:          bytes.Clone(leaf),
		},
	}
}

func TestTLSSecretIsJudgedBeforeTheClusterIsCreated(t *testing.T) {
	plugintest.Kubeconfig(t)
	right := tlsSecret(t, "right", "demo.team-a.svc.cluster.local", "*.demo.team-a.svc.cluster.local")
	elsewhere := tlsSecret(t, "elsewhere", "demo.team-a.svc.kube.prod", "*.demo.team-a.svc.kube.prod")
	foreign := tlsSecret(t, "foreign", "cache.team-a.svc.cluster.local", "*.cache.team-a.svc.cluster.local")
	keyless := tlsSecret(t, "keyless", "demo.team-a.svc.cluster.local", "*.demo.team-a.svc.cluster.local")
	delete(keyless.Data, certs.CAKey)
	opaque := tlsSecret(t, "opaque", "demo.team-a.svc.cluster.local", "*.demo.team-a.svc.cluster.local")
	opaque.Type = corev1.SecretTypeOpaque

	tests := []struct {
		name, secret string
		args         []string
		code         int
		want         string
	}{
		{"one that fits", "right", nil, exit.OK, ""},
		{"one that fits, with the domain named", "right", []string{"--cluster-domain", "cluster.local."}, exit.OK, ""},
		{"V-03 one for another cluster domain is taken, and said", "elsewhere", nil, exit.OK, "note: the certificate is for the cluster domain kube.prod;"},
		{"V-03 one for the cluster domain that is named", "elsewhere", []string{"--cluster-domain", "kube.prod"}, exit.OK, ""},
		{"V-03 one for another domain than the one that is named", "elsewhere", []string{"--cluster-domain", "cluster.local"}, exit.Failed, "lacks the names demo.team-a.svc.cluster.local"},
		{"one for another cluster", "foreign", nil, exit.Failed, "lacks the names demo.team-a.svc.cluster.local, *.demo.team-a.svc.cluster.local"},
		{"one without a CA", "keyless", nil, exit.Failed, "it has no ca.crt"},
		{"one of another type", "opaque", nil, exit.Failed, `its type is "Opaque"`},
		{"one that doesn't exist", "rihgt", nil, exit.Failed, "error: Secret \"rihgt\" doesn't exist in namespace team-a; existing: elsewhere, foreign, keyless, right\n"},
		{"one that misses an outside name", "right", []string{"--external", "--domain", "example.com"}, exit.OK, "shard-0.example.com"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := plugintest.Client(menu(right.DeepCopy(), elsewhere.DeepCopy(), foreign.DeepCopy(), keyless.DeepCopy(), opaque.DeepCopy())...)
			i := (&invocation{client: c}).run(t.Context(), demo(append([]string{"--tls-secret", tt.secret}, tt.args...)...)...)
			if i.code != tt.code || created(t, c) != (tt.code == exit.OK) {
				t.Errorf("exit %d, want %d: %s", i.code, tt.code, i.errOut)
			}
			if !strings.Contains(i.errOut.String(), tt.want) || (tt.want == "") != (i.errOut.String() == "") {
				t.Errorf("stderr = %q, want %q", i.errOut, tt.want)
			}
		})
	}
}
