package create

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// maxACLFile is far above what 64 bindings can take, in bytes.
const maxACLFile = 4 << 20

// readACL reads the bindings of an --acl-file; - is in. Errors never quote a
// password hash: a password may stand there by mistake.
func readACL(path string, in io.Reader) ([]v1alpha1.ACLBinding, error) {
	if path == "" {
		return nil, nil
	}
	r := in
	if path != "-" {
		f, err := os.Open(path) //nolint:gosec // the user names the file
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flagACLFile, err)
		}
		defer func() { _ = f.Close() }()
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, maxACLFile))
	if err != nil {
		return nil, fmt.Errorf("--%s: read %s: %w", flagACLFile, path, err)
	}
	var bindings []v1alpha1.ACLBinding
	if err := yaml.UnmarshalStrict(data, &bindings); err != nil {
		return nil, fmt.Errorf("--%s: %s must be a YAML list of bindings (username, passwordHashes, permissions): %s",
			flagACLFile, path, withoutValues(err.Error()))
	}
	if err := checkBindings(bindings); err != nil {
		return nil, fmt.Errorf("--%s: %w", flagACLFile, err)
	}
	return bindings, nil
}

var passwordHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// checkBindings finds what is wrong with bindings by themselves; the API server
// checks the rest.
func checkBindings(bindings []v1alpha1.ACLBinding) error {
	var seen []string
	for i, b := range bindings {
		switch {
		case b.Username == "":
			return fmt.Errorf("binding %d has no username", i+1)
		case slices.Contains(seen, b.Username):
			return fmt.Errorf("user %s is bound twice; put all permissions into one binding", b.Username)
		case strings.HasPrefix(b.Username, v1alpha1.SystemUserPrefix):
			return fmt.Errorf("user %s: names that start with %s belong to the manager; choose another", b.Username, v1alpha1.SystemUserPrefix)
		case len(b.PasswordHashes) == 0:
			return fmt.Errorf("user %s has no passwordHashes; give the SHA-256 of at least one password", b.Username)
		case len(b.Permissions) == 0:
			return fmt.Errorf("user %s has no permissions; give it at least one roleRef", b.Username)
		}
		for n, h := range b.PasswordHashes {
			if !passwordHash.MatchString(string(h)) {
				return fmt.Errorf("user %s: passwordHashes[%d] is not the SHA-256 of a password in 64 lower-case hex digits", b.Username, n)
			}
		}
		for n, p := range b.Permissions {
			if p.RoleRef == "" {
				return fmt.Errorf("user %s: permissions[%d] has no roleRef", b.Username, n)
			}
		}
		seen = append(seen, b.Username)
	}
	return nil
}

// quoted matches what YAML and JSON decoders repeat of a file's content.
var quoted = regexp.MustCompile("(\"[^\"]*\"|`[^`]*`)")

// withoutValues takes out of a decoder's error what it quotes of the file, but
// for names of fields.
func withoutValues(message string) string {
	return quoted.ReplaceAllStringFunc(message, func(q string) string {
		if strings.Contains(message, "unknown field "+q) {
			return q
		}
		return "…"
	})
}
