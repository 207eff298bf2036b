package external

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

// lookupTimeout bounds how long all names together are looked up.
const lookupTimeout = 5 * time.Second

// tellUnresolved says which outside names don't resolve, before clients are led to
// them. It only says so: clients may ask another resolver than this machine's.
func (o *Options) tellUnresolved(ctx context.Context, c *v1alpha1.ValkeyCluster) error {
	resolve := o.resolve
	if resolve == nil {
		resolve = func(ctx context.Context, host string) error {
			_, err := net.DefaultResolver.LookupHost(ctx, host)
			return err
		}
	}
	limited, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	var unresolved []string
	for _, e := range c.Status.ExternalEndpoints {
		if e.Hostname != "" && resolve(limited, e.Hostname) != nil {
			unresolved = append(unresolved, e.Hostname)
		}
	}
	if len(unresolved) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	more := ""
	if n := len(unresolved) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return o.Note("the outside name %s%s can't be resolved from here; a client that can't resolve it either fails at its next redirect. The records that are needed: %s",
		unresolved[0], more, o.Access.Command("valkey endpoints "+o.Name, o.Namespace))
}
