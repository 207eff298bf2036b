package certs

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// failed are the checks with problems, in order.
func failed(findings []Finding) []string {
	var names []string
	for _, f := range findings {
		if len(f.Problems) > 0 {
			names = append(names, f.Check)
		}
	}
	return names
}

func TestFindingsNameTheCheckThatAMistakeFails(t *testing.T) {
	ca, other := issue(t, caTemplate("ca"), nil), issue(t, caTemplate("other"), nil)
	leaf := issue(t, leafTemplate(), &ca)
	good := func() map[string][]byte { return secretOf(t, leaf, ca) }
	without := func(key string) map[string][]byte {
		data := good()
		delete(data, key)
		return data
	}
	with := func(key string, value []byte) map[string][]byte {
		data := good()
		data[key] = value
		return data
	}
	serverOnly := leafTemplate()
	serverOnly.ExtKeyUsage = serverOnly.ExtKeyUsage[:1]
	oneName := leafTemplate()
	oneName.DNSNames = oneName.DNSNames[:1]
	old := leafTemplate()
	old.NotAfter = now.Add(-time.Hour)
	for name, tt := range map[string]struct {
		data map[string][]byte
		kind string
		want []string
	}{
		"a sound one":      {good(), tlsType, nil},
		"another type":     {good(), "Opaque", []string{CheckType}},
		"no ca.crt":        {without(CAKey), tlsType, []string{CheckKeys}},
		"no tls.crt":       {without(CertificateKey), tlsType, []string{CheckKeys}},
		"no tls.key":       {without(PrivateKeyKey), tlsType, []string{CheckKeys}},
		"garbage":          {with(CertificateKey, []byte("x")), tlsType, []string{CheckCertificate}},
		"a garbled CA":     {with(CAKey, []byte("x")), tlsType, []string{CheckCA}},
		"the CA first":     {with(CertificateKey, concat(ca.certPEM(), leaf.certPEM())), tlsType, []string{CheckLeafFirst, CheckNames, CheckUsages, CheckExternalNames}},
		"another key":      {with(PrivateKeyKey, other.keyPEM(t)), tlsType, []string{CheckKey}},
		"another CA":       {with(CAKey, other.certPEM()), tlsType, []string{CheckChain}},
		"for servers only": {secretOf(t, issue(t, serverOnly, &ca), ca), tlsType, []string{CheckUsages}},
		"no wildcard":      {secretOf(t, issue(t, oneName, &ca), ca), tlsType, []string{CheckNames}},
		"over":             {secretOf(t, issue(t, old, &ca), ca), tlsType, []string{CheckDates}},
	} {
		outside := names
		if name == "the CA first" {
			outside.External = []string{"shard-0.example.com"}
		}
		_, findings := Findings(tt.data, tt.kind, outside, now)
		if got := failed(findings); !slices.Equal(got, tt.want) {
			t.Errorf("%s: failed %v, want %v", name, got, tt.want)
		}
		if len(findings) != 11 {
			t.Errorf("%s: %d checks, want 11", name, len(findings))
		}
	}
}

// The plugin must not pass what the manager refuses, or the other way round.
func TestFindingsAgreeWithCheck(t *testing.T) {
	ca, other := issue(t, caTemplate("ca"), nil), issue(t, caTemplate("other"), nil)
	serverOnly, short := leafTemplate(), leafTemplate()
	serverOnly.ExtKeyUsage = serverOnly.ExtKeyUsage[:1]
	short.NotAfter = now.Add(time.Hour)
	var secrets []map[string][]byte
	for _, leaf := range []issued{issue(t, leafTemplate(), &ca), issue(t, serverOnly, &ca), issue(t, short, &ca)} {
		base := secretOf(t, leaf, ca)
		secrets = append(secrets, base)
		for key := range base {
			for _, value := range [][]byte{nil, []byte("x"), other.certPEM(), other.keyPEM(t), concat(ca.certPEM(), leaf.certPEM())} {
				data := maps.Clone(base)
				data[key] = value
				secrets = append(secrets, data)
			}
		}
	}
	texts := func(problems []settings.Problem) []string {
		var all []string
		for _, p := range problems {
			all = append(all, p.Message)
		}
		slices.Sort(all)
		return all
	}
	for i, data := range secrets {
		_, fatal, warnings := Check(data, tlsType, names, now)
		_, findings := Findings(data, tlsType, names, now)
		var found, foundFatal []settings.Problem
		for _, f := range findings {
			found = append(found, f.Problems...)
			if f.Fatal {
				foundFatal = append(foundFatal, f.Problems...)
			}
		}
		if len(fatal) == 0 {
			if want := texts(warnings); !slices.Equal(texts(found), want) {
				t.Errorf("secret %d: found %q, warnings %q", i, texts(found), want)
			}
			continue
		}
		for _, want := range texts(fatal) {
			if !slices.Contains(texts(foundFatal), want) {
				t.Errorf("secret %d: %q is not among %q", i, want, texts(foundFatal))
			}
		}
	}
}
