package certificate

import (
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// Names of the private CA, one for all clusters of a namespace.
const (
	bootstrapIssuer = "selfsigned-bootstrap"
	caCertificate   = "valkey-ca"
	caSecret        = "valkey-ca-keypair" //nolint:gosec // the name of a Secret
	caIssuer        = "valkey-ca-issuer"
)

// The CA is long-lived, so that it need not change under a running cluster.
const (
	caDuration    = "87600h"
	caRenewBefore = "720h"
)

// issuer of cert-manager.
type issuer struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Group string `json:"group"`
}

// manifest is an object of cert-manager. Its API is not linked: a handful of fields
// doesn't need it.
type manifest struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       any      `json:"spec"`
}

type metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type certificateSpec struct {
	IsCA        bool       `json:"isCA,omitempty"`
	CommonName  string     `json:"commonName,omitempty"`
	SecretName  string     `json:"secretName"`
	Duration    string     `json:"duration"`
	RenewBefore string     `json:"renewBefore"`
	PrivateKey  privateKey `json:"privateKey"`
	Usages      []string   `json:"usages,omitempty"`
	DNSNames    []string   `json:"dnsNames,omitempty"`
	IssuerRef   issuer     `json:"issuerRef"`
}

type privateKey struct {
	Algorithm      string `json:"algorithm"`
	Size           int    `json:"size"`
	RotationPolicy string `json:"rotationPolicy,omitempty"`
}

// certManager are the objects, those that others need first.
func (o *Options) certManager() []any {
	object := func(kind, name string, spec any) manifest {
		return manifest{APIVersion: "cert-manager.io/v1", Kind: kind, Metadata: metadata{Name: name, Namespace: o.namespace}, Spec: spec}
	}
	by := o.issuer
	var list []any
	if by.Name == "" {
		by = issuer{Name: caIssuer, Kind: "Issuer", Group: "cert-manager.io"}
		list = append(list,
			object("Issuer", bootstrapIssuer, map[string]any{"selfSigned": map[string]any{}}),
			object("Certificate", caCertificate, certificateSpec{
				IsCA: true, CommonName: shorten(o.namespace+"-valkey-ca", 64), SecretName: caSecret, Duration: caDuration, RenewBefore: caRenewBefore,
				PrivateKey: privateKey{Algorithm: "ECDSA", Size: 256},
				IssuerRef:  issuer{Name: bootstrapIssuer, Kind: "Issuer", Group: "cert-manager.io"},
			}),
			object("Issuer", caIssuer, map[string]any{"ca": map[string]any{"secretName": caSecret}}))
	}
	return append(list, object("Certificate", o.secretName, certificateSpec{
		SecretName: o.secretName, Duration: hours(o.duration.Hours()), RenewBefore: hours(o.renewBefore.Hours()),
		PrivateKey: privateKey{Algorithm: "ECDSA", Size: 256, RotationPolicy: "Always"},
		Usages:     certs.Usages, DNSNames: o.names.DNSNames(), IssuerRef: by,
	}))
}

// hours writes a duration as cert-manager's documentation does.
func hours(h float64) string { return fmt.Sprintf("%gh", h) }

func shorten(s string, n int) string { return s[:min(len(s), n)] }

// printAll writes objects as YAML documents, or as a list in JSON.
func (o *Options) printAll(list []any) error {
	if o.output == output.JSON {
		v := list[0]
		if len(list) > 1 {
			v = map[string]any{"apiVersion": "v1", "kind": "List", "items": list}
		}
		text, err := output.Data(output.JSON, v)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(o.streams.Out, text)
		return err
	}
	var b strings.Builder
	for i, object := range list {
		if i > 0 {
			b.WriteString("---\n")
		}
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("print the manifests: %w", err)
		}
		b.Write(text)
	}
	_, err := fmt.Fprint(o.streams.Out, b.String())
	return err
}

// domainOf is the cluster domain by the manager's word.
func domainOf(c *v1alpha1.ValkeyCluster) string {
	host, _, _ := strings.Cut(c.Status.Endpoint, ":")
	if domain, ok := strings.CutPrefix(host, objects.ServiceDNSName(c.Name, c.Namespace, "")); ok && domain != "" {
		return domain
	}
	return settings.DefaultClusterDomain
}
