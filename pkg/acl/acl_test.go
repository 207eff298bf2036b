package acl

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	allow = v1alpha1.AccessAllow
	deny  = v1alpha1.AccessDeny
)

func roles() map[string]*v1alpha1.ValkeyRole {
	all := map[string]*v1alpha1.ValkeyRole{}
	for name, spec := range map[string]v1alpha1.ValkeyRoleSpec{
		"reader": {
			Categories: []v1alpha1.CategoryRule{{Name: "read", Access: allow}, {Name: "DANGEROUS", Access: deny}},
			Commands:   []v1alpha1.CommandRule{{Name: "KEYS", Access: deny}, {Name: "config", Subcommand: "GET", Access: allow}},
		},
		"publisher": {Commands: []v1alpha1.CommandRule{{Name: "publish", Access: allow}, {Name: "client", Subcommand: "kill", Access: deny}}},
		"nothing":   {},
	} {
		all[name] = &v1alpha1.ValkeyRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	return all
}

func input(bindings ...v1alpha1.ACLBinding) Input {
	return Input{Bindings: bindings, Roles: roles(), OperatorHashes: []string{Hash("operator")}, ReplicationHashes: []string{Hash("replication")}}
}

func binding(username string, permissions ...v1alpha1.Permission) v1alpha1.ACLBinding {
	return v1alpha1.ACLBinding{Username: username, PasswordHashes: []v1alpha1.PasswordHash{v1alpha1.PasswordHash(Hash(username))}, Permissions: permissions}
}

func permission(role string, keys ...v1alpha1.KeyPermission) v1alpha1.Permission {
	return v1alpha1.Permission{RoleRef: role, Keys: keys}
}

func key(pattern string, access v1alpha1.KeyAccess) v1alpha1.KeyPermission {
	return v1alpha1.KeyPermission{Pattern: pattern, Access: access}
}

// example has every form that a file can take.
func example() Input {
	app := binding("app",
		permission("reader", key("app:*", v1alpha1.KeyRead), key("queue:*", v1alpha1.KeyWrite), key("own:*", v1alpha1.KeyReadWrite)),
		v1alpha1.Permission{RoleRef: "publisher", Channels: []v1alpha1.ChannelPattern{"news:*", "alerts"}})
	app.PasswordHashes = append(app.PasswordHashes, v1alpha1.PasswordHash(Hash("next")))
	in := input(binding("web", permission("publisher")), app, binding("idle", permission("nothing")))
	in.OperatorHashes = append(in.OperatorHashes, Hash("next-operator"))
	return in
}

func render(t *testing.T, in Input) string {
	t.Helper()
	file, problems := Render(in)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return file
}

// line is the rules of one user in a file.
func line(t *testing.T, file, username string) string {
	t.Helper()
	for text := range strings.Lines(file) {
		if rules, ok := strings.CutPrefix(text, "user "+username+" "); ok {
			return strings.TrimSuffix(rules, "\n")
		}
	}
	t.Fatalf("no user %s in\n%s", username, file)
	return ""
}

func TestUsersACLIsRenderedAsReviewed(t *testing.T) {
	for name, in := range map[string]Input{"open": input(), "bound": example(), "bound-default": input(binding("default", permission("reader", key("*", v1alpha1.KeyRead))))} {
		path := "testdata/" + name + ".acl"
		got := render(t, in)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", path, diff)
		}
	}
}

func TestTheDefaultUserIsOpenOnlyWithoutAnyBinding(t *testing.T) {
	if got, want := line(t, render(t, input()), "default"), "on nopass ~* &* +@all"; got != want {
		t.Errorf("no binding: %q, want %q", got, want)
	}
	if got, want := line(t, render(t, input(binding("app", permission("reader")))), "default"), "off resetpass resetkeys resetchannels -@all"; got != want {
		t.Errorf("a binding: %q, want %q", got, want)
	}
	bound := line(t, render(t, input(binding("default", permission("nothing")))), "default")
	if want := "on resetpass #" + Hash("default") + " resetkeys resetchannels -@all"; bound != want {
		t.Errorf("bound: %q, want %q", bound, want)
	}
}

//
func TestPasswordsAreHashedAsTheyAre(t *testing.T) {
	for password, want := range map[string]string{
		`p@ss w"rd`: "da7efbc48e1b6dd843a5e4c175272466d482126349b93ff90a387831654aaf48",
		"secret":    "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b",
	} {
		if got := Hash(password); got != want {
			t.Errorf("Hash(%q) = %s", password, got)
		}
	}
	if got := Hash("secret\n"); !strings.HasPrefix(got, "b37e50ce") {
		t.Errorf("a line break at the end is part of the password, got %s", got)
	}
}

//
func TestHashesOfAnotherFormAreRefusedWithoutShowingThem(t *testing.T) {
	good := Hash("x")
	for name, hash := range map[string]string{"63 digits": good[1:], "65 digits": good + "0", "upper case": strings.ToUpper(good), "no hex": "g" + good[1:], "empty": "", "a line break": good + "\n", "clear text": "hunter2"} {
		b := binding("app", permission("reader"))
		b.PasswordHashes = append(b.PasswordHashes, v1alpha1.PasswordHash(hash))
		file, problems := Render(input(b))
		if file != "" || len(problems) != 1 || problems[0].Reason != v1alpha1.ReasonBindingRefused || !strings.Contains(problems[0].Message, "passwordHashes[1]") {
			t.Errorf("%s: %v", name, problems)
		}
		if hash != "" && len(problems) > 0 && strings.Contains(problems[0].Message, hash) {
			t.Errorf("%s: the message shows it: %s", name, problems[0].Message)
		}
		in := input()
		in.OperatorHashes = []string{hash}
		if _, problems := Render(in); len(problems) != 1 {
			t.Errorf("%s of the operator: %v", name, problems)
		}
	}
	in := input()
	in.ReplicationHashes = nil
	if file, problems := Render(in); file != "" || len(problems) != 1 {
		t.Errorf("a manager's user without password: %v", problems)
	}
}

//
func TestKeysAndChannelsAreGrantedOnlyWhereNamed(t *testing.T) {
	for access, want := range map[v1alpha1.KeyAccess]string{v1alpha1.KeyRead: "%R~myapp:*", v1alpha1.KeyWrite: "%W~myapp:*", v1alpha1.KeyReadWrite: "~myapp:*"} {
		rules := line(t, render(t, input(binding("app", permission("nothing", key("myapp:*", access))))), "app")
		if want := "on resetpass #" + Hash("app") + " resetkeys " + want + " resetchannels -@all"; rules != want {
			t.Errorf("%s: %q, want %q", access, rules, want)
		}
	}
	none := line(t, render(t, input(binding("app", permission("nothing")))), "app")
	if !strings.Contains(none, " resetkeys resetchannels ") || strings.ContainsAny(none, "~&%") {
		t.Errorf("no keys and channels: %q", none)
	}
}

// The server refuses a file with another pattern after the one for everything.
func TestAPatternForEverythingStandsAlone(t *testing.T) {
	p := permission("nothing", key("a:*", v1alpha1.KeyRead), key("*", v1alpha1.KeyReadWrite), key("b", v1alpha1.KeyWrite))
	p.Channels = []v1alpha1.ChannelPattern{"*", "news"}
	want := "on resetpass #" + Hash("app") + " resetkeys ~* resetchannels &* -@all"
	if got := line(t, render(t, input(binding("app", p))), "app"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p = permission("nothing", key("*", v1alpha1.KeyRead), key("b", v1alpha1.KeyWrite))
	want = "on resetpass #" + Hash("app") + " resetkeys %R~* %W~b resetchannels -@all"
	if got := line(t, render(t, input(binding("app", p))), "app"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A-03 and the kind of it: no pattern may be empty or end its word.
func TestPatternsThatAFileCannotHoldAreRefused(t *testing.T) {
	for pattern, refusedIn := range map[string][2]bool{ // as first and as second permission
		"": {true, true}, "a b": {true, true}, "a\nuser x on nopass": {true, true}, "a\t": {true, true}, `a"`: {true, true}, "a'": {true, true}, "a\x7f": {true, true},
		"a)": {false, true}, "a(": {false, false}, "(a": {false, false}, "a)b": {false, false}, "a[)]": {false, false}, "é": {false, false}, "a\\": {false, false},
	} {
		for i, want := range refusedIn {
			for kind, p := range map[string]v1alpha1.Permission{
				"key":     permission("reader", key(pattern, v1alpha1.KeyRead)),
				"channel": {RoleRef: "reader", Channels: []v1alpha1.ChannelPattern{v1alpha1.ChannelPattern(pattern)}},
			} {
				permissions := append(slices.Repeat([]v1alpha1.Permission{permission("reader")}, i), p)
				file, problems := Render(input(binding("app", permissions...)))
				if (len(problems) == 1) != want || len(problems) > 1 || (file == "") != want {
					t.Errorf("%s %q as permission %d: %v", kind, pattern, i, problems)
				}
			}
		}
	}
}

func TestNamesThatAFileCannotHoldAreRefused(t *testing.T) {
	for _, username := range []string{"", "a b", "a\nuser b", "é", "_momento_operator", "_momento_x", strings.Repeat("a", 129)} {
		if file, problems := Render(input(binding(username, permission("reader")))); file != "" || len(problems) != 1 || problems[0].Reason != v1alpha1.ReasonBindingRefused {
			t.Errorf("username %q: %v", username, problems)
		}
	}
	for _, name := range []v1alpha1.RuleName{"", "@read", "a b", "get|x", "a\nuser", "all ~*", "-x"} {
		in := input(binding("app", permission("bad")))
		in.Roles["bad"] = &v1alpha1.ValkeyRole{Spec: v1alpha1.ValkeyRoleSpec{Commands: []v1alpha1.CommandRule{{Name: name, Access: allow}}}}
		if file, problems := Render(in); file != "" || len(problems) != 1 || !strings.Contains(problems[0].Message, `"bad"`) {
			t.Errorf("command %q: %v", name, problems)
		}
		in.Roles["bad"] = &v1alpha1.ValkeyRole{Spec: v1alpha1.ValkeyRoleSpec{Categories: []v1alpha1.CategoryRule{{Name: name, Access: allow}}}}
		if file, problems := Render(in); file != "" || len(problems) != 1 {
			t.Errorf("category %q: %v", name, problems)
		}
	}
	in := input(binding("app", permission("bad", key("a", "all"))))
	in.Roles["bad"] = &v1alpha1.ValkeyRole{Spec: v1alpha1.ValkeyRoleSpec{Categories: []v1alpha1.CategoryRule{{Name: "read", Access: "maybe"}}}}
	if _, problems := Render(in); len(problems) != 2 {
		t.Errorf("unknown accesses: %v", problems)
	}
}

func TestAMissingRoleIsReportedWithThoseThatExist(t *testing.T) {
	file, problems := Render(input(binding("app", permission("reader"), permission("writer"))))
	want := []settings.Problem{{Reason: v1alpha1.ReasonRoleNotFound, Message: `user "app": ValkeyRole "writer" doesn't exist; existing: nothing, publisher, reader`}}
	if diff := cmp.Diff(want, problems); diff != "" || file != "" {
		t.Errorf("file %q (-want +got)\n%s", file, diff)
	}
	in := input(binding("app", permission("writer")))
	in.Roles = nil
	if _, problems := Render(in); len(problems) != 1 || !strings.HasSuffix(problems[0].Message, "none exists") {
		t.Errorf("no roles: %v", problems)
	}
}

func TestAUsernameOfTheConfigCannotBeReusedByTheCluster(t *testing.T) {
	file, problems := Render(input(binding("app", permission("reader")), binding("web", permission("reader")), binding("app", permission("publisher"))))
	if file != "" || len(problems) != 1 || problems[0].Reason != v1alpha1.ReasonDuplicateUsername || !strings.Contains(problems[0].Message, `"app"`) {
		t.Errorf("%v", problems)
	}
}

// A-09 and S-05.
func TestTheManagersUsersHaveJustWhatTheyNeed(t *testing.T) {
	file := render(t, example())
	operator := strings.Fields(line(t, file, OperatorUser))
	var granted []string
	for _, word := range operator {
		if command, ok := strings.CutPrefix(word, "+"); ok {
			granted = append(granted, command)
		}
		if strings.HasPrefix(word, "~") || strings.HasPrefix(word, "%") || strings.HasPrefix(word, "&") || strings.HasPrefix(word, "+@") || word == "nopass" {
			t.Errorf("the operator has %s", word)
		}
	}
	if diff := cmp.Diff(OperatorCommands(), granted); diff != "" {
		t.Errorf("OperatorCommands (-listed +granted)\n%s", diff)
	}
	for _, command := range []string{"cluster", "config", "acl", "cluster|reset", "cluster|flushslot", "cluster|setslot", "config|rewrite", "acl|setuser", "shutdown", "eval", "get", "set", "flushall"} {
		if slices.Contains(granted, command) {
			t.Errorf("the operator may run %s", command)
		}
	}
	replication := line(t, file, ReplicationUser)
	if want := "on resetpass #" + Hash("replication") + " ~* resetchannels -@all +psync +sync +replconf +ping +cluster|syncslots +select +@write -flushall -flushdb -swapdb -function -migrate"; replication != want {
		t.Errorf("replication: %q, want %q", replication, want)
	}
	if !strings.Contains(strings.Join(operator, " "), "#"+Hash("operator")+" #"+Hash("next-operator")) {
		t.Errorf("both passwords of a rotation must log in: %q", operator)
	}
}

func TestEqualUsersGiveAnEqualFileWhateverTheirOrder(t *testing.T) {
	in := example()
	file := render(t, in)
	slices.Reverse(in.Bindings)
	if again := render(t, in); again != file || Revision(again) != Revision(file) {
		t.Errorf("order matters:\n%s\n%s", file, again)
	}
	in.Bindings[0].PasswordHashes[0] = v1alpha1.PasswordHash(Hash("other"))
	if Revision(render(t, in)) == Revision(file) {
		t.Error("another file has the same revision")
	}
	if first, _, _ := strings.Cut(file, "\n"); !strings.HasPrefix(first, "user default ") || strings.Contains(file, "#!") || strings.Contains(file, "\n\n") {
		t.Errorf("file:\n%s", file)
	}
}

func FuzzRender(f *testing.F) {
	f.Add("app", Hash("x"), "app:*", "news:*", "get", "config", "get")
	f.Add("default", "", "a\nuser x on nopass ~* +@all", "b)", "get|x", "a b", "")
	f.Add("_momento_operator", "x\n", "(a", ")", "@all", "", "\r")
	f.Fuzz(func(t *testing.T, username, hash, pattern, channel, category, command, subcommand string) {
		in := input(v1alpha1.ACLBinding{
			Username: username, PasswordHashes: []v1alpha1.PasswordHash{v1alpha1.PasswordHash(hash)},
			Permissions: []v1alpha1.Permission{
				{RoleRef: "fuzz", Keys: []v1alpha1.KeyPermission{key(pattern, v1alpha1.KeyRead)}, Channels: []v1alpha1.ChannelPattern{v1alpha1.ChannelPattern(channel)}},
				{RoleRef: "fuzz", Keys: []v1alpha1.KeyPermission{key(pattern, v1alpha1.KeyReadWrite)}},
			},
		})
		in.Roles["fuzz"] = &v1alpha1.ValkeyRole{Spec: v1alpha1.ValkeyRoleSpec{
			Categories: []v1alpha1.CategoryRule{{Name: v1alpha1.RuleName(category), Access: allow}},
			Commands:   []v1alpha1.CommandRule{{Name: v1alpha1.RuleName(command), Subcommand: v1alpha1.RuleName(subcommand), Access: deny}},
		}}
		file, problems := Render(in)
		if (file == "") != (len(problems) > 0) {
			t.Fatalf("problems %v with file %q", problems, file)
		}
		if file == "" {
			return
		}
		users := []string{"default", username, OperatorUser, ReplicationUser}
		if username == "default" {
			users = users[1:]
		}
		lines := strings.Split(strings.TrimSuffix(file, "\n"), "\n")
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "user "+markerUser) || !strings.HasSuffix(last, " off resetkeys resetchannels -@all") {
			t.Errorf("the marker is %q", last)
		}
		lines = lines[:len(lines)-1]
		if len(lines) != len(users) {
			t.Fatalf("%d lines for %d users:\n%s", len(lines), len(users), file)
		}
		for i, text := range lines {
			if !strings.HasPrefix(text, "user "+users[i]+" ") || strings.ContainsAny(text, "\r\t\x00\"'") {
				t.Errorf("line %d: %q", i, text)
			}
		}
		bound := strings.Fields(line(t, file, username))
		if bound[0] != "on" || bound[1] != "resetpass" || slices.Contains(bound, "nopass") {
			t.Errorf("bound user: %q", bound)
		}
		selector := slices.IndexFunc(bound, func(word string) bool { return strings.HasPrefix(word, "(") })
		for i, word := range bound {
			if inside := selector >= 0 && i > selector; strings.HasPrefix(word, "(") && inside || strings.HasSuffix(word, ")") && inside && i < len(bound)-1 {
				t.Errorf("the selector opens or closes twice: %q", bound)
			}
		}
		if selector < 0 || !strings.HasSuffix(bound[len(bound)-1], ")") {
			t.Errorf("the second permission is no selector: %q", bound)
		}
	})
}
