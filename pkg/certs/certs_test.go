package certs

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

const tlsType = "kubernetes.io/tls"

var names = Names{Service: service}

func concat(parts ...[]byte) []byte { return slices.Concat(parts...) }

func TestTheDocumentedSecretPasses(t *testing.T) {
	ca := issue(t, caTemplate("ca"), nil)
	leaf := issue(t, leafTemplate(), &ca)
	got, fatal, warnings := Check(secretOf(t, leaf, ca), tlsType, names, now)
	if len(fatal)+len(warnings) != 0 {
		t.Errorf("fatal %v, warnings %v", fatal, warnings)
	}
	sum := sha256.Sum256(leaf.certificate.Raw)
	want := Leaf{
		Fingerprint: hex.EncodeToString(sum[:]), Serial: "0ABC", Subject: "CN=my-cluster", Issuer: "CN=ca",
		DNSNames: []string{service, wildcard}, NotBefore: leaf.certificate.NotBefore, NotAfter: leaf.certificate.NotAfter,
	}
	if diff := cmp.Diff(want, got, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".certificate" }, cmp.Ignore())); diff != "" {
		t.Errorf("leaf (-want +got)\n%s", diff)
	}
}

// cert-manager issues leaves without a subject.
func TestALeafWithoutASubjectGoesByItsName(t *testing.T) {
	ca, template := issue(t, caTemplate("ca"), nil), leafTemplate()
	template.Subject = pkix.Name{}
	got, fatal, warnings := Check(secretOf(t, issue(t, template, &ca), ca), tlsType, names, now)
	if got.Subject != "DNS:"+service || len(fatal)+len(warnings) != 0 {
		t.Errorf("subject %q, fatal %v, warnings %v", got.Subject, fatal, warnings)
	}
}

func TestOtherSoundSecretsPass(t *testing.T) {
	ca, other := issue(t, caTemplate("ca"), nil), issue(t, caTemplate("other"), nil)
	middle := issue(t, caTemplate("middle"), &ca)
	leaf, below := issue(t, leafTemplate(), &ca), issue(t, leafTemplate(), &middle)
	ecKey, err := x509.MarshalECPrivateKey(leaf.key)
	if err != nil {
		t.Fatal(err)
	}
	alone := leafTemplate()
	self := issue(t, alone, nil)
	extra := leafTemplate()
	extra.DNSNames = append(extra.DNSNames, "shard-0.example.com", "localhost")
	broad := leafTemplate()
	broad.DNSNames = []string{"*.my-app.svc.cluster.local", strings.ToUpper(wildcard)}
	anyUsage := leafTemplate()
	anyUsage.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
	noUsage := leafTemplate()
	noUsage.ExtKeyUsage = nil
	for name, data := range map[string]map[string][]byte{
		"a bundle of two CAs":             secretOf(t, leaf, other, ca),
		"intermediate after the leaf":     {"tls.crt": concat(below.certPEM(), middle.certPEM()), "tls.key": below.keyPEM(t), "ca.crt": ca.certPEM()},
		"intermediate beside the root":    secretOf(t, below, middle, ca),
		"text between certificates":       {"tls.crt": concat([]byte("subject=x\n"), leaf.certPEM()), "tls.key": leaf.keyPEM(t), "ca.crt": concat([]byte("# ca\n"), ca.certPEM())},
		"key in the older form":           {"tls.crt": leaf.certPEM(), "tls.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: ecKey}), "ca.crt": ca.certPEM()},
		"a leaf that signed itself":       secretOf(t, self, self),
		"more names":                      secretOf(t, issue(t, extra, &ca), ca),
		"the service by another wildcard": secretOf(t, issue(t, broad, &ca), ca),
		"L-03 any usage":                  secretOf(t, issue(t, anyUsage, &ca), ca),
		"L-03 no usage at all":            secretOf(t, issue(t, noUsage, &ca), ca),
	} {
		if _, fatal, warnings := Check(data, tlsType, names, now); len(fatal)+len(warnings) != 0 {
			t.Errorf("%s: fatal %v, warnings %v", name, fatal, warnings)
		}
	}
}

// L-01
func TestALeafCoversTheNamesThatClientsVerify(t *testing.T) {
	ca := issue(t, caTemplate("ca"), nil)
	leaf, _, _ := Check(secretOf(t, issue(t, leafTemplate(), &ca), ca), tlsType, names, now)
	for host, want := range map[string]bool{
		service: true, "my-cluster-0-0." + service: true, "my-cluster-0-0." + service + ".": true,
		"a.b." + service: false, "my-cluster-0-0.my-cluster.my-app.svc": false, "localhost": false, "10.244.0.5": false,
	} {
		if leaf.Covers(host) != want {
			t.Errorf("Covers(%q) = %v", host, !want)
		}
	}
	if (Leaf{}).Covers(service) {
		t.Error("no certificate covers a name")
	}
}

// L-01
func TestNamesThatAreMissingAreListed(t *testing.T) {
	ca := issue(t, caTemplate("ca"), nil)
	for name, tc := range map[string]struct {
		have    []string
		missing string
	}{
		"a wildcard over all Services":  {[]string{"*.svc.cluster.local"}, service + ", " + wildcard},
		"no wildcard":                   {[]string{service, "my-cluster-0-0." + service}, wildcard},
		"the wildcard of the namespace": {[]string{"*.my-app.svc.cluster.local"}, wildcard},
		"the wildcard alone":            {[]string{wildcard}, service},
		"another namespace":             {[]string{"my-cluster.other.svc.cluster.local", "*.my-cluster.other.svc.cluster.local"}, service + ", " + wildcard},
		"another domain":                {[]string{"my-cluster.my-app.svc.kube.prod", "*.my-cluster.my-app.svc.kube.prod"}, service + ", " + wildcard},
		"without the domain":            {[]string{"my-cluster.my-app.svc", "*.my-cluster.my-app.svc"}, service + ", " + wildcard},
	} {
		t.Run(name, func(t *testing.T) {
			template := leafTemplate()
			template.DNSNames = tc.have
			leaf, fatal, _ := Check(secretOf(t, issue(t, template, &ca), ca), tlsType, names, now)
			want := []settings.Problem{{Reason: v1alpha1.ReasonTLSInvalid, Message: fmt.Sprintf(
				"the certificate in tls.crt lacks the names %s; its DNS names are %s: issue it with both %s and %s", tc.missing, strings.Join(tc.have, ", "), service, wildcard)}}
			if diff := cmp.Diff(want, fatal); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if leaf.Fingerprint == "" {
				t.Error("the leaf could be read")
			}
		})
	}
	template := leafTemplate()
	template.Subject = pkix.Name{CommonName: service}
	template.DNSNames = nil
	template.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)}
	_, fatal, _ := Check(secretOf(t, issue(t, template, &ca), ca), tlsType, names, now)
	if len(fatal) != 1 || !strings.Contains(fatal[0].Message, "a common name doesn't count") {
		t.Errorf("only a common name: %v", fatal)
	}
}

// V-03
func TestNamesFollowTheClusterDomain(t *testing.T) {
	ca := issue(t, caTemplate("ca"), nil)
	data := secretOf(t, issue(t, leafTemplate(), &ca), ca)
	_, fatal, _ := Check(data, tlsType, Names{Service: "my-cluster.my-app.svc.kube.prod"}, now)
	if len(fatal) != 1 || !strings.Contains(fatal[0].Message, "*.my-cluster.my-app.svc.kube.prod") {
		t.Errorf("got %v", fatal)
	}
}

func TestASecretThatNodesCouldNotStartWithIsRefusedWithItsReason(t *testing.T) {
	ca := issue(t, caTemplate("ca"), nil)
	leaf, other := issue(t, leafTemplate(), &ca), issue(t, leafTemplate(), &ca)
	good := secretOf(t, leaf, ca)
	der := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("no certificate")})
	params := pem.EncodeToMemory(&pem.Block{Type: "DH PARAMETERS", Bytes: []byte("x")})
	crl := pem.EncodeToMemory(&pem.Block{Type: crlBlock, Bytes: []byte("no list")})
	brokenPEM := bytes.Replace(leaf.certPEM(), []byte("MII"), []byte("M!I"), 1)
	for name, tc := range map[string]struct {
		kind string
		edit map[string][]byte
		want []string
	}{
		"Opaque":                  {kind: "Opaque", want: []string{`its type is "Opaque", but must be kubernetes.io/tls`}},
		"no ca.crt":               {edit: map[string][]byte{"ca.crt": nil}, want: []string{"it has no ca.crt: nodes and clients verify each other by it; an issuer of a private CA fills it in, an ACME issuer doesn't"}},
		"no tls.crt":              {edit: map[string][]byte{"tls.crt": nil}, want: []string{"it has no tls.crt"}},
		"no tls.key":              {edit: map[string][]byte{"tls.key": {}}, want: []string{"it has no tls.key"}},
		"no data":                 {edit: map[string][]byte{"tls.crt": nil, "tls.key": nil, "ca.crt": nil}, want: []string{"it has no tls.crt", "it has no tls.key", "it has no ca.crt"}},
		"no PEM":                  {edit: map[string][]byte{"tls.crt": []byte("hello")}, want: []string{"tls.crt is not PEM"}},
		"PEM of another kind":     {edit: map[string][]byte{"tls.crt": params}, want: []string{"tls.crt holds PEM, but no certificate"}},
		"a key in its place":      {edit: map[string][]byte{"tls.crt": leaf.keyPEM(t)}, want: []string{"tls.crt holds a private key in place of a certificate"}},
		"broken DER":              {edit: map[string][]byte{"tls.crt": der}, want: []string{"tls.crt has a certificate, number 1, that can't be parsed"}},
		"broken PEM":              {edit: map[string][]byte{"tls.crt": brokenPEM}, want: []string{"tls.crt has a block that is broken PEM"}},
		"a second one broken":     {edit: map[string][]byte{"ca.crt": concat(ca.certPEM(), der)}, want: []string{"ca.crt has a certificate, number 2, that can't be parsed"}},
		"a revocation list":       {edit: map[string][]byte{"ca.crt": concat(ca.certPEM(), crl)}, want: []string{"ca.crt has a revocation list that can't be parsed"}},
		"ca.crt without CA":       {edit: map[string][]byte{"ca.crt": []byte("x")}, want: []string{"ca.crt is not PEM"}},
		"the CA first":            {edit: map[string][]byte{"tls.crt": concat(ca.certPEM(), leaf.certPEM())}, want: []string{"tls.crt must begin with the leaf: tls.key belongs to certificate number 2 in it (CN=my-cluster)", "lacks the names"}},
		"another key":             {edit: map[string][]byte{"tls.key": other.keyPEM(t)}, want: []string{"tls.key is not the key of the certificate in tls.crt"}},
		"a key of garbage":        {edit: map[string][]byte{"tls.key": []byte("secret")}, want: []string{"tls.key can't be read"}},
		"a certificate as key":    {edit: map[string][]byte{"tls.key": leaf.certPEM()}, want: []string{"tls.key can't be read"}},
		"a key with a passphrase": {edit: map[string][]byte{"tls.key": pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")})}, want: []string{"tls.key is encrypted with a passphrase"}},
		"an old key with a passphrase": {
			edit: map[string][]byte{"tls.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED"}, Bytes: []byte("x")})},
			want: []string{"tls.key is encrypted with a passphrase"},
		},
		"several at once": {kind: "Opaque", edit: map[string][]byte{"tls.key": other.keyPEM(t), "ca.crt": []byte("x")}, want: []string{"its type", "tls.key is not the key", "ca.crt is not PEM"}},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for key, value := range good {
				data[key] = value
				if edit, edited := tc.edit[key]; edited {
					data[key] = edit
				}
			}
			kind := tc.kind
			if kind == "" {
				kind = tlsType
			}
			_, fatal, warnings := Check(data, kind, names, now)
			if len(fatal) != len(tc.want) || len(warnings) != 0 {
				t.Fatalf("fatal %v, warnings %v", fatal, warnings)
			}
			for i, want := range tc.want {
				if !strings.Contains(fatal[i].Message, want) || fatal[i].Reason != v1alpha1.ReasonTLSInvalid {
					t.Errorf("problem %d: %+v, want %q", i, fatal[i], want)
				}
			}
		})
	}
}

func FuzzCheck(f *testing.F) {
	ca := issue(f, caTemplate("ca"), nil)
	leaf := issue(f, leafTemplate(), &ca)
	f.Add(leaf.certPEM(), leaf.keyPEM(f), ca.certPEM())
	f.Add(leaf.keyPEM(f), leaf.certPEM(), []byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----"))
	f.Add([]byte("x"), []byte{}, leaf.keyPEM(f))
	f.Add(concat(ca.certPEM(), leaf.certPEM()), leaf.keyPEM(f), concat(ca.certPEM(), ca.certPEM()))
	f.Fuzz(func(t *testing.T, crt, key, bundle []byte) {
		read, fatal, warnings := Check(map[string][]byte{"tls.crt": crt, "tls.key": key, "ca.crt": bundle}, tlsType, names, now)
		if len(fatal) == 0 && (read.Fingerprint == "" || !read.Covers(service)) {
			t.Errorf("passes with leaf %+v", read)
		}
		if len(fatal) > 0 && len(warnings) > 0 {
			t.Error("warns of a Secret that can't be used")
		}
		for _, p := range append(fatal, warnings...) {
			if p.Reason == "" || p.Message == "" {
				t.Errorf("problem %+v", p)
			}
			for line := range strings.Lines(string(key)) {
				if line = strings.TrimSpace(line); len(line) > 30 && !strings.HasPrefix(line, "-----") && strings.Contains(p.Message, line) {
					t.Errorf("message shows what is in tls.key: %s", p.Message)
				}
			}
		}
	})
}

func TestDatesDoNotMakeASecretUnusable(t *testing.T) {
	ca := issue(t, caTemplate("ca"), nil)
	template := leafTemplate()
	template.NotAfter = now.Add(-time.Second)
	leaf, fatal, _ := Check(secretOf(t, issue(t, template, &ca), ca), tlsType, names, now)
	if len(fatal) != 0 || !leaf.Covers(service) {
		t.Errorf("an expired leaf: %v", fatal)
	}
}
