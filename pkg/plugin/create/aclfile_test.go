package create

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

var hash = strings.Repeat("0f", 32)

func TestReadACL(t *testing.T) {
	file := `
- username: app
  passwordHashes: ["` + hash + `"]
  permissions:
  - roleRef: read-write
    keys: [{pattern: "app:*", access: readwrite}]
    channels: ["app:*"]
`
	want := []v1alpha1.ACLBinding{{
		Username: "app", PasswordHashes: []v1alpha1.PasswordHash{v1alpha1.PasswordHash(hash)},
		Permissions: []v1alpha1.Permission{{
			RoleRef: "read-write", Keys: []v1alpha1.KeyPermission{{Pattern: "app:*", Access: v1alpha1.KeyReadWrite}},
			Channels: []v1alpha1.ChannelPattern{"app:*"},
		}},
	}}
	path := filepath.Join(t.TempDir(), "users.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{path, "-"} {
		got, err := readACL(from, strings.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("from %s (-want +got):\n%s", from, diff)
		}
	}
	if got, err := readACL("", nil); got != nil || err != nil {
		t.Errorf("without a file: %v, %v", got, err)
	}
}

func TestAWrongACLFileIsRefused(t *testing.T) {
	binding := func(username, hash, role string) string {
		return "- username: \"" + username + "\"\n  passwordHashes: [\"" + hash + "\"]\n  permissions: [{roleRef: \"" + role + "\", keys: []}]\n"
	}
	tests := []struct{ name, file, want string }{
		{"no list", "username: app\n", "must be a YAML list of bindings"},
		{"a field that doesn't exist", "- user: app\n", `unknown field "user"`},
		{"no username", binding("", hash, "r"), "binding 1 has no username"},
		{"a user twice", binding("app", hash, "r") + binding("app", hash, "r"), "user app is bound twice"},
		{"a system user", binding("_momento_x", hash, "r"), "belong to the manager"},
		{"a plain password", binding("app", "hunter2-secret", "r"), "passwordHashes[0] is not the SHA-256"},
		{"no hashes", "- {username: app, permissions: [{roleRef: r, keys: []}]}\n", "has no passwordHashes"},
		{"no permissions", "- {username: app, passwordHashes: [\"" + hash + "\"]}\n", "has no permissions"},
		{"no role", binding("app", hash, ""), "permissions[0] has no roleRef"},
		{"a password where a list belongs", "- {username: app, passwordHashes: hunter2-secret}\n", "must be a YAML list"},
		{"a number in place of a name", "- {username: app, passwordHashes: [\"hunter2-secret\"], permissions: 7}\n", "must be a YAML list"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readACL("-", strings.NewReader(tt.file))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error = %v, want %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error repeats a password: %v", err)
			}
		})
	}
}

func TestAMissingACLFileIsNamed(t *testing.T) {
	_, err := readACL("/nowhere/users.yaml", nil)
	if err == nil || !strings.Contains(err.Error(), "--acl-file: open /nowhere/users.yaml") {
		t.Errorf("error = %v", err)
	}
}
