package certs

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"slices"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// material is a leaf with the CAs that go with it.
func material(t testing.TB, leaf issued, ca ...issued) Material {
	t.Helper()
	data := secretOf(t, leaf, ca...)
	m, err := ParseMaterial(objects.TLSMaterial{CA: data[CAKey], Certificate: data[CertificateKey], Key: data[PrivateKeyKey]})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// fleet is nodes that load the copy, each as it was when they last could.
type fleet struct {
	copied Material
	nodes  []Material
	// known pairs of which the first trusts the second.
	known map[[2]Loaded]bool
}

func (f fleet) loaded() map[string]Loaded {
	out := map[string]Loaded{}
	for i, m := range f.nodes {
		out[fmt.Sprintf("c-%d", i)] = m.Loaded()
	}
	return out
}

// wantTrust fails the test if any node would refuse another.
func (f fleet) wantTrust(t *testing.T) {
	t.Helper()
	for i, a := range f.nodes {
		for j, b := range f.nodes {
			pair := [2]Loaded{a.Loaded(), b.Loaded()}
			if !f.known[pair] && !a.trusts(b) {
				t.Fatalf("node %d with CA %s does not trust node %d with leaf of %s", i, cas(a), j, b.Leaf.Issuer)
			}
			f.known[pair] = true
		}
	}
}

func cas(m Material) (out []string) {
	for _, c := range m.ca {
		out = append(out, c.Subject.CommonName)
	}
	return out
}

// rotate goes from one material to another while nodes load one after the other, so
// that every mixture is seen; stuck is one that never loads, or -1. The decision is
// made anew before every load, as after a restart of the manager. It returns what the
// copy held.
func rotate(t *testing.T, from, wish Material, stuck int) (history []Material, stage Step) {
	t.Helper()
	f := fleet{copied: from, nodes: []Material{from, from, from}, known: map[[2]Loaded]bool{}}
	history = []Material{from}
	for range 60 {
		stage = NextStep(wish, f.copied, f.loaded())
		if stage.Write != nil {
			next, err := ParseMaterial(*stage.Write)
			if err != nil {
				t.Fatal(err)
			}
			f.copied = next
			history = append(history, next)
		}
		f.wantTrust(t)
		moved := false
		for i := range f.nodes {
			if i != stuck && f.nodes[i].Loaded() != f.copied.Loaded() {
				f.nodes[i] = f.copied
				moved = true
				break
			}
		}
		f.wantTrust(t)
		if !moved && stage.Write == nil {
			return history, stage
		}
	}
	t.Fatalf("no end: %+v", stage)
	return nil, Step{}
}

// L-11 and what is like it.
func TestNoNodeEverServesALeafThatAnotherDoesNotTrust(t *testing.T) {
	oldCA, newCA := issue(t, caTemplate("old"), nil), issue(t, caTemplate("new"), nil)
	oldLeaf, renewed, newLeaf := issue(t, leafTemplate(), &oldCA), issue(t, leafTemplate(), &oldCA), issue(t, leafTemplate(), &newCA)
	start := material(t, oldLeaf, oldCA)
	for name, c := range map[string]struct {
		from, wish Material
		writes     int
	}{
		"nothing changed":              {start, start, 0},
		"leaf of the same CA":          {start, material(t, renewed, oldCA), 1},
		"CA added":                     {start, material(t, oldLeaf, oldCA, newCA), 1},
		"CA dropped that is not used":  {material(t, oldLeaf, oldCA, newCA), start, 1},
		"bundle with the new leaf":     {start, material(t, newLeaf, oldCA, newCA), 2},
		"straight swap":                {start, material(t, newLeaf, newCA), 3},
		"old CA dropped at last":       {material(t, newLeaf, oldCA, newCA), material(t, newLeaf, newCA), 1},
		"dropped with the leaf it had": {material(t, oldLeaf, oldCA, newCA), material(t, newLeaf, newCA), 2},
		"back from the middle":         {material(t, newLeaf, newCA, oldCA), start, 2},
	} {
		t.Run(name, func(t *testing.T) {
			history, last := rotate(t, c.from, c.wish, -1)
			if len(history)-1 != c.writes || last.Stage != "" {
				t.Errorf("%d writes, want %d; at the end %+v", len(history)-1, c.writes, last)
			}
			if got := history[len(history)-1]; !sameMaterial(got.TLSMaterial, c.wish.TLSMaterial) {
				t.Errorf("the copy holds leaf %s and CAs %v at the end", got.Leaf.Issuer, cas(got))
			}
		})
	}
}

// A kubelet that is frozen half-way: no peer goes on to the new leaf.
func TestASwapWaitsForANodeThatDoesNotLoad(t *testing.T) {
	oldCA, newCA := issue(t, caTemplate("old"), nil), issue(t, caTemplate("new"), nil)
	start, wish := material(t, issue(t, leafTemplate(), &oldCA), oldCA), material(t, issue(t, leafTemplate(), &newCA), newCA)
	history, last := rotate(t, start, wish, 1)
	if len(history) != 2 || history[1].Leaf.Fingerprint != start.Leaf.Fingerprint {
		t.Errorf("%d versions, the last with the leaf of %s", len(history), history[len(history)-1].Leaf.Issuer)
	}
	if !slices.Equal(last.Waiting, []string{"c-1"}) || last.Stage == "" {
		t.Errorf("it waits for %v: %q", last.Waiting, last.Stage)
	}
	// A leaf of the CA that everybody trusts is given to the others meanwhile.
	if history, _ := rotate(t, start, material(t, issue(t, leafTemplate(), &oldCA), oldCA), 1); len(history) != 2 {
		t.Errorf("a renewed leaf waits for a node that does not load: %d versions", len(history))
	}
}

// The Secret may change again at any step.
func TestASwapThatIsOvertakenGoesOnSafely(t *testing.T) {
	authorities := []issued{issue(t, caTemplate("a"), nil), issue(t, caTemplate("b"), nil), issue(t, caTemplate("c"), nil)}
	all := make([]Material, 0, len(authorities))
	for i := range authorities {
		all = append(all, material(t, issue(t, leafTemplate(), &authorities[i]), authorities[i]))
	}
	for first := range 12 { // loads before the wish changes
		f := fleet{copied: all[0], nodes: []Material{all[0], all[0], all[0]}, known: map[[2]Loaded]bool{}}
		for at := range 60 {
			wish := all[1]
			if at >= first {
				wish = all[2]
			}
			if step := NextStep(wish, f.copied, f.loaded()); step.Write != nil {
				next, err := ParseMaterial(*step.Write)
				if err != nil {
					t.Fatal(err)
				}
				f.copied = next
			}
			f.nodes[at%3] = f.copied
			f.wantTrust(t)
		}
		if !sameMaterial(f.copied.TLSMaterial, all[2].TLSMaterial) {
			t.Errorf("overtaken after %d loads, the copy holds the leaf of %s at last", first, f.copied.Leaf.Issuer)
		}
	}
}

func TestMaterialThatNoNodeAcceptsIsReplacedAtOnce(t *testing.T) {
	ca, other := issue(t, caTemplate("ca"), nil), issue(t, caTemplate("other"), nil)
	broken, good := material(t, issue(t, leafTemplate(), &ca), other), material(t, issue(t, leafTemplate(), &ca), ca)
	step := NextStep(good, broken, map[string]Loaded{"c-0": {}})
	if step.Write == nil || !bytes.Equal(step.Write.CA, good.CA) {
		t.Errorf("step is %+v", step)
	}
}

// L-05: what is worse than what nodes have is not given to them.
func TestHarmfulMaterialIsWithheldFromNodesThatRunWell(t *testing.T) {
	ca := issue(t, caTemplate("ca"), nil)
	good := material(t, issue(t, leafTemplate(), &ca), ca)
	expiredTemplate := leafTemplate()
	expiredTemplate.NotBefore, expiredTemplate.NotAfter = now.AddDate(-1, 0, 0), now.AddDate(0, 0, -1)
	early := leafTemplate()
	early.NotBefore = now.AddDate(0, 0, 1)
	serverOnly := leafTemplate()
	serverOnly.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	expired := material(t, issue(t, expiredTemplate, &ca), ca)
	soon := leafTemplate()
	soon.NotAfter = now.AddDate(0, 0, 3)
	for name, c := range map[string]struct {
		wish, have Material
		want       string
	}{
		"fit":                   {good, good, ""},
		"expiring":              {material(t, issue(t, soon, &ca), ca), good, ""},
		"expired":               {expired, good, v1alpha1.ReasonTLSExpired},
		"both expired":          {expired, expired, ""},
		"not yet valid":         {material(t, issue(t, early, &ca), ca), good, v1alpha1.ReasonTLSNotYetValid},
		"no client auth":        {material(t, issue(t, serverOnly, &ca), ca), good, v1alpha1.ReasonTLSUsageMissing},
		"signed by nobody here": {material(t, good.issuedElsewhere(t), ca), good, v1alpha1.ReasonTLSChainBroken},
		"good after expired":    {good, expired, ""},
	} {
		var got settings.Problem
		if p := Withheld(warn(c.wish.chain, c.wish.ca, Names{}, now), c.have, now); p != nil {
			got = *p
		}
		if got.Reason != c.want {
			t.Errorf("%s: %+v, want reason %q", name, got, c.want)
		}
	}
}

func (m Material) issuedElsewhere(t *testing.T) issued {
	t.Helper()
	other := issue(t, caTemplate("elsewhere"), nil)
	return issue(t, leafTemplate(), &other)
}

func FuzzParseMaterial(f *testing.F) {
	ca := issue(f, caTemplate("ca"), nil)
	leaf := issue(f, leafTemplate(), &ca)
	f.Add(leaf.certPEM(), ca.certPEM())
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n"), []byte("x"))
	f.Add(append(leaf.certPEM(), ca.certPEM()...), append([]byte("junk\n"), ca.certPEM()...))
	good := material(f, leaf, ca)
	f.Fuzz(func(t *testing.T, certificate, bundle []byte) {
		m, err := ParseMaterial(objects.TLSMaterial{CA: bundle, Certificate: certificate, Key: []byte("key")})
		if err != nil {
			return
		}
		if len(m.Leaf.Fingerprint) != 64 || m.Roots() == nil {
			t.Errorf("leaf %+v", m.Leaf)
		}
		// Whatever it is, a step is safe for nodes that have what the copy holds.
		step := NextStep(m, good, map[string]Loaded{"c-0": good.Loaded()})
		if step.Write == nil {
			return
		}
		next, err := ParseMaterial(*step.Write)
		if err != nil {
			t.Fatalf("the copy would not be readable: %v", err)
		}
		if !next.trusts(good) || !good.trusts(next) {
			t.Errorf("the step %q cuts nodes off", step.Stage)
		}
	})
}
