package acl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// A role of 256 commands makes 33 kB of each permission that refers to it.
func TestUsersThatNoConfigMapHoldsAreRefused(t *testing.T) {
	long := v1alpha1.ValkeyRoleSpec{}
	for i := range 256 {
		long.Commands = append(long.Commands, v1alpha1.CommandRule{
			Name: v1alpha1.RuleName(fmt.Sprintf("c%03d%s", i, strings.Repeat("x", 60))), Subcommand: v1alpha1.RuleName(strings.Repeat("y", 64)), Access: allow,
		})
	}
	users := func(n int) Input {
		in := input()
		for i := range n {
			in.Bindings = append(in.Bindings, binding(fmt.Sprintf("u%02d", i), permission("long")))
		}
		in.Roles["long"] = &v1alpha1.ValkeyRole{Spec: long}
		return in
	}
	if file, problems := Render(users(31)); len(problems) != 0 || len(file) > 1<<20 {
		t.Errorf("%d bytes: %v", len(file), problems)
	}
	file, problems := Render(users(32))
	if file != "" || len(problems) != 1 || problems[0].Reason != v1alpha1.ReasonBindingRefused || !strings.Contains(problems[0].Message, "a ConfigMap holds 1048576") {
		t.Errorf("%d bytes: %v", len(file), problems)
	}
}
