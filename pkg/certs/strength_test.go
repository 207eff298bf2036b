package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// signed is a certificate for any kind of key, by any kind of CA.
func signed(t *testing.T, template, issuer x509.Certificate, key, by crypto.Signer) *x509.Certificate {
	t.Helper()
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), now.AddDate(0, -6, 0), now.AddDate(0, 6, 0)
	der, err := x509.CreateCertificate(rand.Reader, &template, &issuer, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func rsaKey(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func pemOf(t *testing.T, key crypto.Signer, chain ...*x509.Certificate) (crt, private []byte) {
	t.Helper()
	for _, c := range chain {
		crt = append(crt, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return crt, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// A server refuses these when it loads its certificate ("ee key too small", "ca key
// too small") or at every handshake ("no shared cipher"): a new pod would not start.
func TestKeysThatServersRefuseAreFatal(t *testing.T) {
	caKey, weakKey := rsaKey(t, 2048), rsaKey(t, 1024)
	ca := signed(t, caTemplate("ca"), caTemplate("ca"), caKey, caKey)
	middle := signed(t, caTemplate("middle"), caTemplate("ca"), weakKey, caKey)
	p224, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leafKey := rsaKey(t, 2048)
	for name, tc := range map[string]struct {
		key   crypto.Signer
		chain []*x509.Certificate
		want  string
	}{
		"RSA of 2048 bits":            {leafKey, []*x509.Certificate{signed(t, leafTemplate(), caTemplate("ca"), leafKey, caKey)}, ""},
		"RSA of 1024 bits":            {weakKey, []*x509.Certificate{signed(t, leafTemplate(), caTemplate("ca"), weakKey, caKey)}, "certificate number 1 in tls.crt has an RSA key of 1024 bits: servers refuse less than 2048"},
		"an intermediate of 1024":     {leafKey, []*x509.Certificate{signed(t, leafTemplate(), caTemplate("middle"), leafKey, weakKey), middle}, "certificate number 2 in tls.crt has an RSA key of 1024 bits"},
		"a curve that no TLS can use": {p224, []*x509.Certificate{signed(t, leafTemplate(), caTemplate("ca"), p224, caKey)}, "P-224"},
	} {
		crt, key := pemOf(t, tc.key, tc.chain...)
		root, _ := pemOf(t, caKey, ca)
		data := map[string][]byte{"tls.crt": crt, "tls.key": key, "ca.crt": root}
		_, fatal, warnings := Check(data, tlsType, names, now)
		if tc.want == "" {
			if len(fatal)+len(warnings) != 0 {
				t.Errorf("%s: fatal %v, warnings %v", name, fatal, warnings)
			}
			continue
		}
		if len(fatal) != 1 || fatal[0].Reason != v1alpha1.ReasonTLSInvalid || !strings.Contains(fatal[0].Message, tc.want) {
			t.Errorf("%s: %v, want %q", name, fatal, tc.want)
		}
	}
}

func TestACAThatNodesRefuseBreaksTheChain(t *testing.T) {
	weakKey, leafKey := rsaKey(t, 1024), rsaKey(t, 2048)
	crt, key := pemOf(t, leafKey, signed(t, leafTemplate(), caTemplate("old"), leafKey, weakKey))
	root, _ := pemOf(t, weakKey, signed(t, caTemplate("old"), caTemplate("old"), weakKey, weakKey))
	_, fatal, warnings := Check(map[string][]byte{"tls.crt": crt, "tls.key": key, "ca.crt": root}, tlsType, names, now)
	if len(fatal) != 0 || len(warnings) != 1 || warnings[0].Reason != v1alpha1.ReasonTLSChainBroken ||
		!strings.Contains(warnings[0].Message, `the CA certificate "CN=old" has an RSA key of 1024 bits`) {
		t.Errorf("fatal %v, warnings %v", fatal, warnings)
	}
}

func TestAnObsoleteSignatureIsNamed(t *testing.T) {
	caKey, leafKey := rsaKey(t, 2048), rsaKey(t, 2048)
	template := leafTemplate()
	template.SignatureAlgorithm = x509.SHA1WithRSA
	crt, key := pemOf(t, leafKey, signed(t, template, caTemplate("ca"), leafKey, caKey))
	root, _ := pemOf(t, caKey, signed(t, caTemplate("ca"), caTemplate("ca"), caKey, caKey))
	_, _, warnings := Check(map[string][]byte{"tls.crt": crt, "tls.key": key, "ca.crt": root}, tlsType, names, now)
	if len(warnings) != 1 || warnings[0].Reason != v1alpha1.ReasonTLSChainBroken || !strings.Contains(warnings[0].Message, "signed with SHA1-RSA") {
		t.Errorf("warnings %v", warnings)
	}
}

// encoding/pem reads over a blank line or a header in a block; servers end there
// with "not proc type".
func TestPEMThatOnlyGoReadsIsFatal(t *testing.T) {
	ca := issue(t, caTemplate("ca"), nil)
	good := secretOf(t, issue(t, leafTemplate(), &ca), ca)
	for _, key := range []string{"tls.crt", "tls.key", "ca.crt"} {
		for name, inserted := range map[string]string{"blank line": "\n", "blank line with spaces": "  \r\n", "header": "Foo: bar\n\n"} {
			data := map[string][]byte{"tls.crt": good["tls.crt"], "tls.key": good["tls.key"], "ca.crt": good["ca.crt"]}
			lines := bytes.SplitAfter(data[key], []byte("\n"))
			at := 2
			if name == "header" {
				at = 1
			}
			data[key] = bytes.Join([][]byte{bytes.Join(lines[:at], nil), []byte(inserted), bytes.Join(lines[at:], nil)}, nil)
			_, fatal, _ := Check(data, tlsType, names, now)
			if len(fatal) != 1 || !strings.Contains(fatal[0].Message, key+" has a blank line or a header inside a PEM block") {
				t.Errorf("%s in %s: %v", name, key, fatal)
			}
		}
		data := map[string][]byte{"tls.crt": good["tls.crt"], "tls.key": good["tls.key"], "ca.crt": good["ca.crt"]}
		data[key] = bytes.ReplaceAll(append([]byte("\n# from: here\n\n"), data[key]...), []byte("\n"), []byte("\r\n"))
		if _, fatal, warnings := Check(data, tlsType, names, now); len(fatal)+len(warnings) != 0 {
			t.Errorf("text and blank lines around a block of %s, and CRLF: %v %v", key, fatal, warnings)
		}
	}
}
