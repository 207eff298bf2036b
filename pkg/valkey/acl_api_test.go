//go:build api

package valkey

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// sets makes random roles and bindings.
type sets struct {
	*rand.Rand
	categories, commands []string
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func (s sets) access() v1alpha1.Access {
	return pick(s.Rand, v1alpha1.AccessAllow, v1alpha1.AccessDeny)
}

func (s sets) role(name string) *v1alpha1.ValkeyRole {
	role := &v1alpha1.ValkeyRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for range s.IntN(6) {
		role.Spec.Categories = append(role.Spec.Categories, v1alpha1.CategoryRule{Name: v1alpha1.RuleName(pick(s.Rand, s.categories...)), Access: s.access()})
	}
	for range s.IntN(12) {
		name, sub, _ := strings.Cut(pick(s.Rand, s.commands...), "|")
		role.Spec.Commands = append(role.Spec.Commands, v1alpha1.CommandRule{Name: v1alpha1.RuleName(name), Subcommand: v1alpha1.RuleName(sub), Access: s.access()})
	}
	return role
}

// pattern is of characters that an ACL file can hold, glob signs and brackets too.
func (s sets) pattern() string {
	const alphabet = `abcXYZ019:*?[]{}()!#%&~+-@|\^$.,;<>=_é`
	runes := []rune(alphabet)
	var b strings.Builder
	for range 1 + s.IntN(12) {
		b.WriteRune(pick(s.Rand, runes...))
	}
	return b.String()
}

func (s sets) input() acl.Input {
	in := acl.Input{Roles: map[string]*v1alpha1.ValkeyRole{}, OperatorHashes: []string{acl.Hash(operatorPass)}, ReplicationHashes: []string{acl.Hash("repl")}}
	for i := range 1 + s.IntN(4) {
		name := fmt.Sprintf("role-%d", i)
		in.Roles[name] = s.role(name)
	}
	for i := range s.IntN(6) {
		b := v1alpha1.ACLBinding{Username: pick(s.Rand, fmt.Sprintf("user_%d", i), fmt.Sprintf("%d-U", i))}
		if i == 5 {
			b.Username = "default"
		}
		for j := range 1 + s.IntN(3) {
			b.PasswordHashes = append(b.PasswordHashes, v1alpha1.PasswordHash(acl.Hash(fmt.Sprint(i, j))))
		}
		for range 1 + s.IntN(4) {
			p := v1alpha1.Permission{RoleRef: fmt.Sprintf("role-%d", s.IntN(len(in.Roles)))}
			for range s.IntN(4) {
				p.Keys = append(p.Keys, v1alpha1.KeyPermission{Pattern: s.pattern(), Access: pick(s.Rand, v1alpha1.KeyRead, v1alpha1.KeyWrite, v1alpha1.KeyReadWrite)})
			}
			for range s.IntN(3) {
				p.Channels = append(p.Channels, v1alpha1.ChannelPattern(s.pattern()))
			}
			b.Permissions = append(b.Permissions, p)
		}
		in.Bindings = append(in.Bindings, b)
	}
	return in
}

// Whatever roles and bindings there are: a file that is rendered, and whose names the
// server knows by its own word, is one that it loads; with any other name it isn't.
func TestEveryRenderedFileIsLoadedByARealServer(t *testing.T) {
	s := startServer(t, 60)
	node := s.dial(t)
	known, err := node.Vocabulary(t.Context(), nil)
	if err != nil || len(known.Categories) < 15 {
		t.Fatalf("categories are %v, %v", known.Categories, err)
	}
	const seed = 20261130
	random := sets{
		Rand:       rand.New(rand.NewPCG(seed, seed)),
		categories: append(known.Categories, "all", "READ"),
		commands: []string{
			"get", "SET", "del", "hset", "eval", "publish", "client|kill", "client", "config|get", "config", "acl|whoami", "cluster|slots",
			"xgroup|create", "object|encoding", "select", "flushall", "script|load", "function", "pubsub|channels", "memory|usage",
		},
	}
	rendered, refused := 0, 0
	for i := 0; rendered < 1000; i++ {
		in := random.input()
		odd := i%10 == 9 && len(in.Bindings) > 0
		if odd {
			in.Roles[in.Bindings[0].Permissions[0].RoleRef].Spec = v1alpha1.ValkeyRoleSpec{Commands: []v1alpha1.CommandRule{{
				Name:       v1alpha1.RuleName(pick(random.Rand, "get", "config", "nosuch", "select")),
				Subcommand: v1alpha1.RuleName(pick(random.Rand, "", "get", "nosuch", "zero")), Access: random.access(),
			}}}
		}
		file, problems := acl.Render(in)
		if len(problems) > 0 {
			continue // a pattern that ends in a bracket, in a second permission
		}
		rendered++
		names := in.RuleNames()
		vocabulary, err := node.Vocabulary(t.Context(), acl.Questions(names))
		if err != nil {
			t.Fatal(err)
		}
		unknown := vocabulary.Unknown(names)
		if err := os.WriteFile(s.users, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		err = node.ACLLoad(t.Context())
		if (err == nil) != (len(unknown) == 0) {
			t.Fatalf("set %d: unknown are %v, and the server says %v to\n%s", i, unknown, err, file)
		}
		list, listErr := node.ACLList(t.Context())
		if listErr != nil {
			t.Fatal(listErr)
		}
		if acl.InForce(list, file) != (err == nil) {
			t.Fatalf("set %d: loaded is %t, but the server lists\n%s", i, err == nil, strings.Join(list, "\n"))
		}
		if err != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no set had a name that the server doesn't know: the test asks too little")
	}
	t.Logf("%d sets, %d of them with names that the server refuses", rendered, refused)
}

func TestAChangeByHandShowsInWhatTheServerLists(t *testing.T) {
	s := startServer(t, 61)
	node := s.dial(t)
	file, problems := acl.Render(acl.Input{OperatorHashes: []string{acl.Hash(operatorPass)}, ReplicationHashes: []string{acl.Hash("repl")}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	load := func(text string) []string {
		t.Helper()
		if err := os.WriteFile(s.users, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := node.ACLLoad(t.Context()); err != nil {
			t.Fatal(err)
		}
		list, err := node.ACLList(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	first := load(file)
	if again := load(file); acl.ListRevision(again) != acl.ListRevision(first) || !acl.InForce(again, file) {
		t.Error("the same file is listed in another way")
	}
	changed := load(file + "user intruder on nopass ~* +@all\n")
	if acl.ListRevision(changed) == acl.ListRevision(first) {
		t.Error("a user more is not noticed")
	}
}
