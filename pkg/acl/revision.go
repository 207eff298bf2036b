package acl

import (
	"slices"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// markerUser starts the name of a user that is off and may do nothing. Its name
// identifies the rest of the file: what a server lists of its users is worded by the
// server, but it shows the name of this one only once it has read that file.
const markerUser = v1alpha1.SystemUserPrefix + "rev_"

// markerDigits of the SHA-256 of a file make its marker.
const markerDigits = 16

func marker(body string) string {
	return "user " + markerUser + Hash(body)[:markerDigits] + " off resetkeys resetchannels -@all\n"
}

// InForce reports whether a server that answers ACL LIST so has loaded the file.
func InForce(list []string, file string) bool {
	var want string
	for line := range strings.Lines(file) {
		if strings.HasPrefix(line, "user "+markerUser) {
			want = strings.Fields(line)[1]
		}
	}
	return want != "" && slices.ContainsFunc(list, func(line string) bool { return strings.HasPrefix(line, "user "+want+" ") })
}

// ListRevision identifies what a server lists of its users, to notice changes that
// were made by hand.
func ListRevision(list []string) string { return Hash(strings.Join(list, "\n")) }

// RuleName is a name in a role that only servers know to exist.
type RuleName struct {
	// Role that has it.
	Role string
	// Category is whether it names a category; else a command, as command or
	// command|subcommand.
	Category bool
	// Name in lower case.
	Name string
	// Denied is whether the role takes it away.
	Denied bool
}

// RuleNames lists what the roles that users are bound to name.
func (in Input) RuleNames() []RuleName {
	var names []RuleName
	seen := map[string]bool{}
	for _, b := range in.Bindings {
		for _, p := range b.Permissions {
			role := in.Roles[p.RoleRef]
			if role == nil || seen[p.RoleRef] {
				continue
			}
			seen[p.RoleRef] = true
			for _, c := range role.Spec.Categories {
				names = append(names, RuleName{Role: p.RoleRef, Category: true, Name: strings.ToLower(string(c.Name)), Denied: c.Access == v1alpha1.AccessDeny})
			}
			for _, c := range role.Spec.Commands {
				name := strings.ToLower(string(c.Name))
				if c.Subcommand != "" {
					name += "|" + strings.ToLower(string(c.Subcommand))
				}
				names = append(names, RuleName{Role: p.RoleRef, Name: name, Denied: c.Access == v1alpha1.AccessDeny})
			}
		}
	}
	return names
}

// Vocabulary is what a server knows.
type Vocabulary struct {
	// Categories of commands.
	Categories []string
	// Commands that exist, as command or command|subcommand, of those that were asked
	// for. The value is whether the command has subcommands.
	Commands map[string]bool
}

// Questions are the commands that a server has to be asked about to judge names.
func Questions(names []RuleName) []string {
	var out []string
	for _, n := range names {
		if n.Category {
			continue
		}
		out = append(out, n.Name)
		if base, _, ok := strings.Cut(n.Name, "|"); ok {
			out = append(out, base)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Unknown returns the names that the server would refuse a file for.
func (v Vocabulary) Unknown(names []RuleName) []RuleName {
	return slices.DeleteFunc(slices.Clone(names), func(n RuleName) bool {
		if n.Category {
			return n.Name == "all" || slices.Contains(v.Categories, n.Name)
		}
		if _, known := v.Commands[n.Name]; known {
			return true
		}
		// Of a command without subcommands the first argument can be granted, not denied.
		base, _, cut := strings.Cut(n.Name, "|")
		subcommands, known := v.Commands[base]
		return cut && known && !subcommands && !n.Denied
	})
}
