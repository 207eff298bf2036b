package certs

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// Material is what nodes load, parsed.
type Material struct {
	objects.TLSMaterial
	// Leaf that nodes serve with it.
	Leaf Leaf

	chain, ca []*x509.Certificate
}

// ParseMaterial reads material that was checked before.
func ParseMaterial(m objects.TLSMaterial) (Material, error) {
	chain, err := parseCertificates(m.Certificate)
	if err != nil {
		return Material{}, fmt.Errorf("%s %w", CertificateKey, err)
	}
	ca, err := parseCertificates(m.CA)
	if err != nil {
		return Material{}, fmt.Errorf("%s %w", CAKey, err)
	}
	return Material{TLSMaterial: m, Leaf: newLeaf(chain[0]), chain: chain, ca: ca}, nil
}

// Loaded is what one node is known to have: the fingerprint of the leaf that it
// serves and the digest of the CA bundle that it has confirmed. Empty is unknown.
type Loaded struct {
	Leaf, CA string
}

// Loaded is what a node has when it has the material.
func (m Material) Loaded() Loaded { return Loaded{Leaf: m.Leaf.Fingerprint, CA: CADigest(m.CA)} }

// Roots are the certificates that peers and clients verify the leaf by.
func (m Material) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range m.ca {
		pool.AddCert(c)
	}
	return pool
}

// CADigest identifies the content of a CA bundle: the SHA-256 in lower-case hex.
func CADigest(bundle []byte) string {
	sum := sha256.Sum256(bundle)
	return hex.EncodeToString(sum[:])
}

// trusts reports whether a node with this CA bundle accepts the other's leaf.
func (m Material) trusts(other Material) bool {
	path, _ := checkChain(other.chain, m.ca)
	return len(path) > 0
}

// includes reports whether every certificate of the other bundle is in this one.
func (m Material) includes(other Material) bool {
	for _, c := range other.ca {
		if !slices.ContainsFunc(m.ca, c.Equal) {
			return false
		}
	}
	return true
}

// sameAnchors reports whether the leaf of next is good for every root that this
// leaf is good for: whoever accepts this one, by whichever bundle, accepts that one.
func (m Material) sameAnchors(next Material) bool {
	all := slices.Concat(m.ca, next.ca)
	intermediates := slices.DeleteFunc(slices.Clone(all), isSelfIssued)
	for _, root := range all {
		if !isSelfIssued(root) {
			continue
		}
		alone := Material{ca: append([]*x509.Certificate{root}, intermediates...)}
		if alone.trusts(m) && !alone.trusts(next) {
			return false
		}
	}
	return true
}

// Step is what to do next with the material that nodes load.
type Step struct {
	// Write is the next content of the manager's copy; nil to leave it.
	Write *objects.TLSMaterial
	// Stage says what is written, or what is waited for; empty when the copy holds what
	// is wished.
	Stage string
	// Waiting names the nodes that have to load the copy as it is before it may
	// change, sorted.
	Waiting []string
}

// NextStep decides how the copy that nodes load comes to hold what is wished, so
// that at no moment a node serves a leaf that a peer doesn't trust. Nodes are all
// that run, those that can't be reached too.
//
// Most changes are one step: another leaf by the same CA, another CA added. A swap
// to another CA takes three: both CAs with the leaf in use, then the new leaf, then
// the new CA alone, each only when every node has the one before. The copy and what
// nodes have say all: nothing else has to be remembered, at no point.
func NextStep(wish, have Material, nodes map[string]Loaded) Step {
	if sameMaterial(wish.TLSMaterial, have.TLSMaterial) {
		return Step{}
	}
	if !have.trusts(have) {
		return Step{Write: &wish.TLSMaterial, Stage: "a certificate that nodes accept from each other"}
	}
	if wish.trusts(wish) && wish.includes(have) && have.sameAnchors(wish) {
		return Step{Write: &wish.TLSMaterial, Stage: "another certificate of a CA that every node trusts"}
	}
	switch mutual := wish.trusts(wish) && wish.trusts(have) && have.trusts(wish); {
	case mutual:
		return have.onceLoaded(wish, notAt(nodes, have.Loaded(), wish.Loaded()), wish.TLSMaterial, "what the Secret holds")
	case !have.includes(wish):
		next := have.TLSMaterial
		next.CA = bundle(have, wish)
		return Step{Write: &next, Stage: "both CAs, with the certificate in use"}
	default:
		next := wish.TLSMaterial
		next.CA = have.CA
		return have.onceLoaded(wish, notAt(nodes, have.Loaded()), next, "the new certificate, with both CAs")
	}
}

// onceLoaded writes when no node is behind.
func (m Material) onceLoaded(wish Material, behind []string, next objects.TLSMaterial, stage string) Step {
	switch {
	case len(behind) == 0:
		return Step{Write: &next, Stage: stage}
	case m.Leaf.Fingerprint != wish.Leaf.Fingerprint:
		return Step{Waiting: behind, Stage: "another CA, step 1: every node has to trust both CAs before one gets the new certificate"}
	}
	return Step{Waiting: behind, Stage: "another CA, step 2: every node has to serve the new certificate before the old CA goes"}
}

// notAt names the nodes that have none of some states.
func notAt(nodes map[string]Loaded, states ...Loaded) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		if !slices.Contains(states, nodes[name]) {
			out = append(out, name)
		}
	}
	return out
}

func sameMaterial(a, b objects.TLSMaterial) bool {
	return bytes.Equal(a.CA, b.CA) && bytes.Equal(a.Certificate, b.Certificate) && bytes.Equal(a.Key, b.Key)
}

// bundle is the wished CA bundle and, after it, what it lacks of the one in use.
func bundle(have, wish Material) []byte {
	out := bytes.TrimRight(wish.CA, "\n")
	out = append(slices.Clone(out), '\n')
	for _, c := range have.ca {
		if !slices.ContainsFunc(wish.ca, c.Equal) {
			out = append(out, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: c.Raw})...)
		}
	}
	return out
}

// harmful are warnings about material that is worse than none: nodes that load it
// lose each other or their clients.
var harmful = []string{v1alpha1.ReasonTLSUsageMissing, v1alpha1.ReasonTLSChainBroken, v1alpha1.ReasonTLSExpired, v1alpha1.ReasonTLSNotYetValid}

// Withheld says why the wished material is not given to nodes that run well with
// what they have: nil if it is. Warnings are those of the wished material.
func Withheld(warnings []settings.Problem, have Material, now time.Time) *settings.Problem {
	i := slices.IndexFunc(warnings, isHarmful)
	if i < 0 || slices.ContainsFunc(warn(have.chain, have.ca, Names{}, now), isHarmful) {
		return nil
	}
	return &settings.Problem{Reason: warnings[i].Reason, Message: strings.TrimSuffix(warnings[i].Message, ".") + "; nodes go on with the certificate that they have"}
}

func isHarmful(p settings.Problem) bool { return slices.Contains(harmful, p.Reason) }
