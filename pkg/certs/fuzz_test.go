package certs

import (
	"bytes"
	"testing"
)

// Whatever a Secret holds, it is judged without a panic, both judges agree on
// whether it can be used, and nothing of a key is repeated.
func FuzzSecretsAreJudged(f *testing.F) {
	ca := issue(f, caTemplate("ca"), nil)
	leaf := issue(f, leafTemplate(), &ca)
	key := leaf.keyPEM(f)
	f.Add(leaf.certPEM(), key, ca.certPEM(), tlsType)
	f.Add(concat(ca.certPEM(), leaf.certPEM()), key, ca.certPEM(), tlsType)
	f.Add(key, leaf.certPEM(), []byte("x"), "Opaque")
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n"), []byte{}, key, "")
	f.Fuzz(func(t *testing.T, crt, key, root []byte, kind string) {
		data := map[string][]byte{CertificateKey: crt, PrivateKeyKey: key, CAKey: root}
		_, fatal, _ := Check(data, kind, names, now)
		_, findings := Findings(data, kind, names, now)
		found := false
		for _, finding := range findings {
			found = found || finding.Fatal
			for _, p := range finding.Problems {
				if secret := bytes.TrimSpace(key); len(secret) > 64 && bytes.Contains([]byte(p.Message), secret[:64]) {
					t.Errorf("%s repeats the key: %s", finding.Check, p.Message)
				}
			}
		}
		if found != (len(fatal) > 0) {
			t.Errorf("fatal %v, findings %+v", fatal, findings)
		}
		Sort(concat(crt, key, root))
	})
}
