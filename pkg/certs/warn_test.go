package certs

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// L-03 and L-05: the design warns of usages and dates.
func TestWhatLeavesNodesRunningIsAWarning(t *testing.T) {
	ca, stranger := issue(t, caTemplate("ca"), nil), issue(t, caTemplate("stranger"), nil)
	middle := issue(t, caTemplate("middle"), &ca)
	old := caTemplate("old")
	old.NotBefore, old.NotAfter = now.AddDate(-2, 0, 0), now.Add(-time.Hour)
	expiredCA := issue(t, old, nil)
	soon := caTemplate("soon")
	soon.NotAfter = now.AddDate(0, 0, 10)
	endingCA := issue(t, soon, nil)
	with := func(change func(*x509.Certificate)) x509.Certificate {
		template := leafTemplate()
		change(&template)
		return template
	}
	for name, tc := range map[string]struct {
		data     map[string][]byte
		external []string
		want     []settings.Problem
	}{
		"server auth only": {
			data: secretOf(t, issue(t, with(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }), &ca), ca),
			want: []settings.Problem{{Reason: v1alpha1.ReasonTLSUsageMissing, Message: "lacks client auth"}},
		},
		"client auth only": {
			data: secretOf(t, issue(t, with(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }), &ca), ca),
			want: []settings.Problem{{Reason: v1alpha1.ReasonTLSUsageMissing, Message: "lacks server auth"}},
		},
		"key encipherment only": {
			data: secretOf(t, issue(t, with(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment | x509.KeyUsageDataEncipherment }), &ca), ca),
			want: []settings.Problem{{Reason: v1alpha1.ReasonTLSUsageMissing, Message: "key usage lacks digital signature"}},
		},
		"key agreement only": {
			data: secretOf(t, issue(t, with(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyAgreement }), &ca), ca),
		},
		"another usage": {
			data: secretOf(t, issue(t, with(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning} }), &ca), ca),
			want: []settings.Problem{{Reason: v1alpha1.ReasonTLSUsageMissing, Message: "lacks client auth"}, {Reason: v1alpha1.ReasonTLSUsageMissing, Message: "lacks server auth"}},
		},
		"expired": {
			data: secretOf(t, issue(t, with(func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Second) }), &ca), ca),
			want: []settings.Problem{{Reason: v1alpha1.ReasonTLSExpired, Message: "the certificate expired on 2026-11-30T11:59:59Z"}},
		},
		"not yet valid": {
			data: secretOf(t, issue(t, with(func(c *x509.Certificate) { c.NotBefore = now.Add(time.Hour) }), &ca), ca),
			want: []settings.Problem{{Reason: v1alpha1.ReasonTLSNotYetValid, Message: "valid only from 2026-11-30T13:00:00Z on"}},
		},
		"13 days left": {
			data: secretOf(t, issue(t, with(func(c *x509.Certificate) { c.NotAfter = now.Add(ExpiryWarning - time.Second) }), &ca), ca),
			want: []settings.Problem{{Reason: v1alpha1.ReasonTLSExpiring, Message: "expires on 2026-12-14T11:59:59Z, in 13 days"}},
		},
		"14 days left": {
			data: secretOf(t, issue(t, with(func(c *x509.Certificate) { c.NotAfter = now.Add(ExpiryWarning) }), &ca), ca),
		},
		"expired CA, valid leaf": {
			data: secretOf(t, issue(t, leafTemplate(), &expiredCA), expiredCA),
			want: []settings.Problem{{Reason: v1alpha1.ReasonTLSExpired, Message: `the CA certificate "CN=old" expired on 2026-11-30T11:00:00Z`}},
		},
		"an expired CA beside the one in use": {data: secretOf(t, issue(t, leafTemplate(), &ca), expiredCA, ca)},
		"a CA about to expire": {
			data: secretOf(t, issue(t, leafTemplate(), &endingCA), endingCA),
			want: []settings.Problem{{Reason: v1alpha1.ReasonTLSExpiring, Message: `the CA certificate "CN=soon" expires on 2026-12-10T12:00:00Z, in 10 days`}},
		},
		"a chain to no CA of the bundle": {
			data: secretOf(t, issue(t, leafTemplate(), &ca), stranger),
			want: []settings.Problem{{Reason: v1alpha1.ReasonTLSChainBroken, Message: "not signed by any CA in ca.crt (issuer of the certificate: CN=ca)"}},
		},
		"another CA of the same name": {
			data: secretOf(t, issue(t, leafTemplate(), &ca), issue(t, caTemplate("ca"), nil)),
			want: []settings.Problem{{Reason: v1alpha1.ReasonTLSChainBroken, Message: "not signed by any CA in ca.crt"}},
		},
		"an intermediate as the only CA": {
			data: secretOf(t, issue(t, leafTemplate(), &middle), middle),
			want: []settings.Problem{{Reason: v1alpha1.ReasonTLSChainBroken, Message: "ca.crt holds no root certificate"}},
		},
		"a missing intermediate": {
			data: secretOf(t, issue(t, leafTemplate(), &middle), ca),
			want: []settings.Problem{{Reason: v1alpha1.ReasonTLSChainBroken, Message: "put the root into ca.crt and any intermediates after the leaf into tls.crt"}},
		},
		"external names": {
			data:     secretOf(t, issue(t, with(func(c *x509.Certificate) { c.DNSNames = append(c.DNSNames, "shard-0.example.com", "*.covered.com") }), &ca), ca),
			external: []string{"shard-0.example.com", "shard-1.example.com", "x.covered.com", "shard-2.example.com"},
			want:     []settings.Problem{{Reason: v1alpha1.ReasonTLSNameNotCovered, Message: "the external names shard-1.example.com, shard-2.example.com:"}},
		},
		"everything at once, the heaviest first": {
			data: secretOf(t, issue(t, with(func(c *x509.Certificate) {
				c.ExtKeyUsage, c.NotAfter = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, now.Add(-time.Hour)
			}), &ca), stranger),
			external: []string{"shard-0.example.com"},
			want: []settings.Problem{
				{Reason: v1alpha1.ReasonTLSUsageMissing, Message: "client auth"},
				{Reason: v1alpha1.ReasonTLSChainBroken, Message: "not signed"},
				{Reason: v1alpha1.ReasonTLSExpired, Message: "expired"},
				{Reason: v1alpha1.ReasonTLSNameNotCovered, Message: "shard-0"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, fatal, warnings := Check(tc.data, tlsType, Names{Service: service, External: tc.external}, now)
			if len(fatal) != 0 {
				t.Fatal(fatal)
			}
			var got []settings.Problem
			for i, w := range warnings {
				if i < len(tc.want) && strings.Contains(w.Message, tc.want[i].Message) {
					w.Message = tc.want[i].Message
				}
				got = append(got, w)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("warnings (-want +got)\n%s", diff)
			}
		})
	}
}
