package acl

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// The CRDs have the same rules. They are checked again because a line is built by
// joining words, and what was stored before a rule existed is not checked by it.
var (
	usernameForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	hashForm     = regexp.MustCompile(`^[0-9a-f]{64}$`)
	ruleForm     = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]*$`)
	patternForm  = regexp.MustCompile(`^[^\x00-\x20\x7f"']+$`)
)

func notHash(s string) bool { return !hashForm.MatchString(s) }

func refused(format string, args ...any) settings.Problem {
	return settings.Problem{Reason: v1alpha1.ReasonBindingRefused, Message: fmt.Sprintf(format, args...)}
}

// duplicates reports usernames that occur twice. The names within one list are
// unique, so one of the two is the config's and the other the cluster's.
func duplicates(bindings []v1alpha1.ACLBinding) []settings.Problem {
	count := map[string]int{}
	for _, b := range bindings {
		count[b.Username]++
	}
	var problems []settings.Problem
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if count[name] > 1 {
			problems = append(problems, settings.Problem{Reason: v1alpha1.ReasonDuplicateUsername, Message: fmt.Sprintf(
				"user %q is bound both by the cluster's ValkeyConfig and in spec.acl: rename or remove the one in spec.acl", name)})
		}
	}
	return problems
}

// userLine renders one binding. The first permission makes the user's own rules,
// every other one a selector: the commands of a role so reach the keys of its own
// permission only.
func (in Input) userLine(b v1alpha1.ACLBinding) (string, []settings.Problem) {
	var problems []settings.Problem
	switch {
	case !usernameForm.MatchString(b.Username):
		problems = append(problems, refused("username %q must hold only letters, digits, '_' and '-'", b.Username))
	case strings.HasPrefix(b.Username, v1alpha1.SystemUserPrefix):
		problems = append(problems, refused("user %q: names that start with %s belong to the manager", b.Username, v1alpha1.SystemUserPrefix))
	}
	hashes := make([]string, len(b.PasswordHashes))
	for i, hash := range b.PasswordHashes {
		hashes[i] = string(hash)
		if notHash(hashes[i]) {
			problems = append(problems, refused("user %q: passwordHashes[%d] is not the SHA-256 of a password as 64 lower-case hex digits", b.Username, i))
		}
	}
	words := []string{userPrefix(b.Username, hashes)}
	if len(b.Permissions) == 0 {
		words = append(words, "resetkeys resetchannels -@all")
	}
	for i, p := range b.Permissions {
		rules, found := in.permission(b.Username, i, p)
		problems = append(problems, found...)
		text := strings.Join(rules, " ")
		if i > 0 {
			text = "(" + text + ")"
		}
		words = append(words, text)
	}
	return strings.Join(words, " "), problems
}

// permission renders keys, channels and the commands of a role: nothing that isn't
// granted is left to a default.
func (in Input) permission(username string, index int, p v1alpha1.Permission) ([]string, []settings.Problem) {
	var problems []settings.Problem
	check := func(pattern string) {
		switch {
		case !patternForm.MatchString(pattern):
			problems = append(problems, refused("user %q: pattern %q must not be empty nor hold spaces, quotes or control characters", username, pattern))
		case index > 0 && strings.HasSuffix(pattern, ")"):
			// The server ends a selector at the first word that ends in a bracket.
			problems = append(problems, refused("user %q: pattern %q ends in a bracket, which an ACL file can't hold in a second permission: write [)] for it", username, pattern))
		}
	}
	rules := []string{"resetkeys"}
	for _, key := range p.Keys {
		check(key.Pattern)
		prefix, known := keyPrefixes[key.Access]
		if !known {
			problems = append(problems, refused("user %q: access %q to keys %q is none of read, write and readwrite", username, key.Access, key.Pattern))
		}
		rules = append(rules, prefix+key.Pattern)
	}
	rules = onlyEverything(rules, "~*")
	channels := []string{"resetchannels"}
	for _, channel := range p.Channels {
		check(string(channel))
		channels = append(channels, "&"+string(channel))
	}
	rules = append(rules, onlyEverything(channels, "&*")...)
	role, ok := in.Roles[p.RoleRef]
	if !ok {
		return nil, append(problems, settings.Problem{Reason: v1alpha1.ReasonRoleNotFound, Message: fmt.Sprintf(
			"user %q: ValkeyRole %q doesn't exist; %s", username, p.RoleRef, settings.Existing(slices.Collect(maps.Keys(in.Roles))))})
	}
	commands, found := roleRules(p.RoleRef, role.Spec)
	return append(rules, commands...), append(problems, found...)
}

// onlyEverything leaves the pattern for everything alone, where it is among others:
// the server refuses a file with a pattern after it. The first rule resets.
func onlyEverything(rules []string, everything string) []string {
	if slices.Contains(rules, everything) {
		return []string{rules[0], everything}
	}
	return rules
}

// keyPrefixes never stand alone: a prefix without a pattern crashed servers.
var keyPrefixes = map[v1alpha1.KeyAccess]string{
	v1alpha1.KeyRead:      "%R~",
	v1alpha1.KeyWrite:     "%W~",
	v1alpha1.KeyReadWrite: "~",
}

// roleRules renders the commands of a role: from nothing, categories in order, then
// commands in order.
func roleRules(name string, role v1alpha1.ValkeyRoleSpec) ([]string, []settings.Problem) {
	var problems []settings.Problem
	rules := []string{"-@all"}
	add := func(access v1alpha1.Access, prefix string, parts ...v1alpha1.RuleName) {
		words := make([]string, len(parts))
		for i, part := range parts {
			words[i] = strings.ToLower(string(part))
			if !ruleForm.MatchString(words[i]) {
				problems = append(problems, refused("ValkeyRole %q: %q is no name of a category or command: it must start with a letter and hold only letters, digits, '_' and '-'", name, part))
			}
		}
		sign := "+"
		switch access {
		case v1alpha1.AccessAllow:
		case v1alpha1.AccessDeny:
			sign = "-"
		default:
			problems = append(problems, refused("ValkeyRole %q: access %q is neither allow nor deny", name, access))
		}
		rules = append(rules, sign+prefix+strings.Join(words, "|"))
	}
	for _, c := range role.Categories {
		add(c.Access, "@", c.Name)
	}
	for _, c := range role.Commands {
		if c.Subcommand == "" {
			add(c.Access, "", c.Name)
		} else {
			add(c.Access, "", c.Name, c.Subcommand)
		}
	}
	return rules, problems
}
