package certificate

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/checklist"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// maxFile is far above what a Secret can hold.
const maxFile = 4 << 20

// Checked is what --check prints as JSON or YAML.
type Checked struct {
	// Names that the certificate needs.
	Names []string `json:"names"`
	// Passed, Failed and Skipped count the checks.
	Passed  int             `json:"passed"`
	Failed  int             `json:"failed"`
	Skipped int             `json:"skipped"`
	Checks  []checklist.Row `json:"checks"`
}

// checkFile judges a file as the manager would judge the Secret.
func (o *Options) checkFile() error {
	text, err := o.readFile()
	if err != nil {
		return err
	}
	secret, isSecret, err := parse(text)
	if err != nil {
		return err
	}
	leaf, findings := certs.Findings(secret.Data, string(secret.Type), o.names, o.clock.Now())
	if !isSecret {
		// A file of PEM has neither a type nor keys.
		findings = slices.DeleteFunc(findings, func(f certs.Finding) bool { return f.Check == certs.CheckType || f.Check == certs.CheckKeys })
	}
	c := Checked{Names: o.names.DNSNames(), Checks: checklist.OfSecret(leaf, findings, o.names.External)}
	c.Passed, c.Failed, c.Skipped = checklist.Count(c.Checks)
	var shown string
	if o.output == output.Text {
		shown, err = checklist.Text(c.Checks, o.flags.Palette(o.streams.Out))
	} else {
		shown, err = output.Data(o.output, c)
	}
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(o.streams.Out, shown); err != nil {
		return err
	}
	if c.Failed > 0 {
		return fmt.Errorf("%s failed: %s", output.Plural(c.Failed, "check"), strings.Join(checklist.FailedChecks(c.Checks), ", "))
	}
	return nil
}

func (o *Options) readFile() ([]byte, error) {
	in := o.streams.In
	if o.check != "-" {
		file, err := os.Open(o.check)
		if err != nil {
			return nil, fmt.Errorf("read --check: %w", err)
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read --check: %w", err)
	case len(text) > maxFile:
		return nil, fmt.Errorf("read --check: the file is larger than %d bytes", maxFile)
	}
	return text, nil
}

// parse takes a file for a Secret if it says so, else for PEM. The text is never
// repeated in an error: it holds a key.
func parse(text []byte) (secret *corev1.Secret, isSecret bool, err error) {
	// Documents before the one that is meant are of no interest.
	for document := range strings.SplitSeq("\n"+string(text), "\n---") {
		var s corev1.Secret
		if yaml.Unmarshal([]byte(document), &s) != nil || s.Kind != "Secret" {
			continue
		}
		if s.Data == nil {
			s.Data = map[string][]byte{}
		}
		for key, value := range s.StringData {
			s.Data[key] = []byte(value)
		}
		return &s, true, nil
	}
	data := certs.Sort(text)
	if len(data) == 0 {
		return nil, false, errors.New("--check: the file holds neither a Secret nor PEM")
	}
	return &corev1.Secret{Type: corev1.SecretTypeTLS, Data: data}, false, nil
}
