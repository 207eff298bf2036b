package acl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// judge asks a running server whether it knows every name that the roles have. While
// no server runs there is none to harm and none to ask. It reports whether the users
// may be published, and notes why not.
func (r *Reconciler) judge(ctx context.Context, p *pass) bool {
	names := p.input().RuleNames()
	for _, m := range p.members {
		if !m.Commandable() {
			continue
		}
		v, err := r.vocabulary(ctx, p, m, names)
		if err != nil {
			p.unasked = err
			continue
		}
		p.refused, p.unasked = verdict(v.Unknown(names)), nil
		break
	}
	return p.refused == nil && p.unasked == nil
}

// verdict puts unknown names into words.
func verdict(unknown []acl.RuleName) *settings.Problem {
	if len(unknown) == 0 {
		return nil
	}
	var texts []string
	for _, n := range unknown {
		kind := "command"
		if n.Category {
			kind = "category"
		}
		texts = append(texts, fmt.Sprintf("ValkeyRole %q: the servers know no %s %q", n.Role, kind, strings.ReplaceAll(n.Name, "|", " ")))
	}
	slices.Sort(texts)
	return &settings.Problem{Reason: v1alpha1.ReasonRoleRefused, Message: strings.Join(texts, "; ") + ": correct the name in the role"}
}
