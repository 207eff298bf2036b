package verifytls

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/progress"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/tlsprobe"
)

// lookAgain is how often nodes are asked for their certificate while a rotation is
// waited for.
const lookAgain = time.Second

// await waits until every node shows the Secret's leaf and the manager says so too:
// only it knows which CA a node has loaded. It returns what was seen last.
func (o *Options) await(ctx context.Context, s *subject, p pods) (*subject, error) {
	waitCtx, stop := context.WithTimeout(ctx, o.timeout)
	defer stop()
	reporter := progress.New(o.streams.ErrOut, o.flags.Terminal(o.streams.ErrOut), o.clock)
	defer reporter.Done()
	ticker := o.clock.NewTicker(lookAgain)
	defer ticker.Stop()
	last := "nothing is known yet"
	for {
		if hopeless(s) {
			return s, nil // the checks say what is wrong
		}
		lagging := o.lagging(waitCtx, s, p)
		if waitCtx.Err() == nil {
			last = pending(s, lagging)
			if last == "" {
				return s, nil
			}
			reporter.Update(last)
		}
		select {
		case <-waitCtx.Done():
			if ctx.Err() != nil {
				return nil, exit.Interruptedf("interrupted; the rotation goes on: %s", last)
			}
			return nil, exit.Timeoutf("the certificate of Secret %s is not served by every node after %s: %s", s.cluster.Spec.TLS.SecretRef, o.timeout, last)
		case <-ticker.C():
		}
		next, err := o.observe(waitCtx)
		switch {
		case err == nil:
			s = next
		case waitCtx.Err() == nil:
			return nil, err
		}
	}
}

// hopeless is whether waiting can't help: somebody has to mend something first.
func hopeless(s *subject) bool {
	return s.leaf.Fingerprint == "" || s.unlisted != nil || slices.ContainsFunc(s.findings, func(f certs.Finding) bool { return f.Fatal })
}

// lagging are the nodes that don't show the Secret's leaf.
func (o *Options) lagging(ctx context.Context, s *subject, p pods) []string {
	var mu sync.Mutex
	var list []string
	each(len(s.nodes), func(i int) {
		name := s.nodes[i].Name
		h := tlsprobe.Look(ctx, to(p, name, clientPort), s.podName(name), s.roots, o.clock.Now)
		if len(h.Chain) > 0 && certs.Fingerprint(h.Chain[0].Raw) == s.leaf.Fingerprint {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		list = append(list, name)
	})
	slices.Sort(list)
	return list
}

// pending says what is waited for, in one line; nothing if it is all there.
func pending(s *subject, lagging []string) string {
	switch {
	case len(s.nodes) == 0:
		return "the cluster has no nodes yet"
	case len(lagging) > 0:
		return fmt.Sprintf("%d of %s serve the new certificate; missing: %s", len(s.nodes)-len(lagging), output.Plural(len(s.nodes), "node"), strings.Join(lagging, ", "))
	case s.cluster.Status.TLS != nil && s.cluster.Status.TLS.Fingerprint != s.leaf.Fingerprint:
		return "every node serves the new certificate; the manager has not confirmed it yet"
	}
	ready := meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionTLSReady)
	if ready != nil && ready.Status != "True" && (rotates(ready.Reason) || s.cluster.Status.State == v1alpha1.StateInvalid) {
		return "every node serves the new certificate; TLSReady is not true yet: " + output.Clean(ready.Message)
	}
	return ""
}

// rotates is whether the manager is still at it. The last step of a swap to another
// CA changes no leaf.
func rotates(reason string) bool {
	return reason == v1alpha1.ReasonTLSRotating || reason == v1alpha1.ReasonTLSNotServed
}
