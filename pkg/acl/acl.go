// Package acl renders users.acl: the default user, the bound users and the
// manager's own two.
package acl

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// defaultUser is who a connection is before it logs in.
const defaultUser = "default"

const (
	// openDefault is the default user of a cluster without any binding. Without a
	// line of its own the server would make the same of it.
	openDefault = "user default on nopass ~* &* +@all"
	// closedDefault takes everything away: off alone would leave connections that
	// are open with all their rights.
	closedDefault = "user default off resetpass resetkeys resetchannels -@all"
)

// maxFile is how many bytes a ConfigMap can hold. Every permission repeats the
// commands of its role, so that few bindings can come to more.
const maxFile = 1 << 20

// Input is what the users of a cluster follow from.
type Input struct {
	// Bindings of the config, then those of the cluster.
	Bindings []v1alpha1.ACLBinding
	// Roles that exist, by name.
	Roles map[string]*v1alpha1.ValkeyRole
	// OperatorHashes and ReplicationHashes are of the passwords that the manager's
	// two users may log in with; two of each while they are rotated.
	OperatorHashes, ReplicationHashes []string
}

// Render writes users.acl: one line a user, sorted by name, the manager's own last,
// and after them the marker by which InForce knows the file.
// Equal input gives equal text. With a problem there is no text: a file that
// misses a user would lock clients out, and a line that the server can't read would
// stop every new pod at its start.
func Render(in Input) (string, []settings.Problem) {
	problems := duplicates(in.Bindings)
	bindings := slices.SortedStableFunc(slices.Values(in.Bindings), func(a, b v1alpha1.ACLBinding) int {
		return strings.Compare(a.Username, b.Username)
	})
	var lines []string
	switch bound := slices.ContainsFunc(bindings, func(b v1alpha1.ACLBinding) bool { return b.Username == defaultUser }); {
	case len(bindings) == 0:
		lines = append(lines, openDefault)
	case !bound:
		lines = append(lines, closedDefault)
	}
	for _, b := range bindings {
		line, found := in.userLine(b)
		problems = append(problems, found...)
		lines = append(lines, line)
	}
	for _, user := range []struct {
		name, rules string
		hashes      []string
	}{
		{OperatorUser, operatorRules(), in.OperatorHashes},
		{ReplicationUser, replicationRules, in.ReplicationHashes},
	} {
		if len(user.hashes) == 0 || slices.ContainsFunc(user.hashes, notHash) {
			problems = append(problems, refused("user %s has no usable password hash", user.name))
		}
		lines = append(lines, userPrefix(user.name, user.hashes)+" "+user.rules)
	}
	if len(problems) > 0 {
		return "", problems
	}
	body := strings.Join(lines, "\n") + "\n"
	file := body + marker(body)
	if len(file) > maxFile {
		return "", []settings.Problem{refused("the users come to a file of %d bytes, and a ConfigMap holds %d: bind fewer users, or let roles name categories in place of many commands", len(file), maxFile)}
	}
	return file, nil
}

// userPrefix is a line up to its rules. Every user starts from nothing, whatever
// the server's defaults are.
func userPrefix(name string, hashes []string) string {
	var b strings.Builder
	b.WriteString("user " + name + " on resetpass")
	for _, hash := range hashes {
		b.WriteString(" #" + hash)
	}
	return b.String()
}

// Hash is what an ACL file holds of a password: its SHA-256 in lower-case hex. The
// password is taken as it is, a line break at its end included.
func Hash(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

// Revision identifies the content of a file.
func Revision(file string) string { return Hash(file) }
