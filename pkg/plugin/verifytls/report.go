package verifytls

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/checklist"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// Report is what "verify-tls" prints as JSON or YAML. Its form is stable: fields are
// added, never renamed or removed.
type Report struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Secret    string `json:"secret"`
	// Certificate is the leaf of the Secret, unset when it can't be read.
	Certificate *Certificate `json:"certificate,omitempty"`
	// Passed, Failed and Skipped count the checks.
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	// Checks in the order in which they build on each other.
	Checks []checklist.Row `json:"checks"`
}

// Certificate is the leaf that nodes should serve.
type Certificate struct {
	Subject     string    `json:"subject"`
	Issuer      string    `json:"issuer"`
	Fingerprint string    `json:"fingerprint"`
	DNSNames    []string  `json:"dnsNames"`
	NotBefore   time.Time `json:"notBefore"`
	NotAfter    time.Time `json:"notAfter"`
	// DaysLeft until NotAfter, rounded down; negative once it is over.
	DaysLeft int `json:"daysLeft"`
}

// failure is the error that a report with failed checks exits with.
func (r *Report) failure() error {
	if r.Failed == 0 {
		return nil
	}
	return fmt.Errorf("%s of the TLS of cluster %s in namespace %s failed: %s",
		output.Plural(r.Failed, "check"), r.Name, r.Namespace, strings.Join(checklist.FailedChecks(r.Checks), ", "))
}

// text shows the report to a person.
func (r *Report) text(p output.Palette) (string, error) {
	var b strings.Builder
	line := func(key, value string) {
		fmt.Fprintf(&b, "%s %s\n", p.Title(fmt.Sprintf("%-12s", key+":")), value)
	}
	line("Cluster", r.Namespace+"/"+r.Name)
	line("Secret", r.Secret)
	if c := r.Certificate; c != nil {
		line("Certificate", fmt.Sprintf("%s, issued by %s", output.Clean(c.Subject), output.Clean(c.Issuer)))
		line("Valid until", fmt.Sprintf("%s (%s)", checklist.Date(c.NotAfter), left(c.DaysLeft)))
	}
	checks, err := checklist.Text(r.Checks, p)
	return b.String() + "\n" + checks, err
}

func left(days int) string {
	if days < 0 {
		return "expired"
	}
	return output.Plural(days, "day") + " left"
}
