package networkpolicy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/netpol"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/operation"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// live reads the policies of the same names; nil where there is none. One that
// somebody else made is an error, so that nothing is written when any is.
func (o *Options) live(ctx context.Context, policies []*networkingv1.NetworkPolicy) ([]*networkingv1.NetworkPolicy, error) {
	found := make([]*networkingv1.NetworkPolicy, len(policies))
	var errs []error
	for i, want := range policies {
		p := &networkingv1.NetworkPolicy{}
		err := kube.Get(ctx, o.client, client.ObjectKeyFromObject(want), p, "networkpolicies")
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			errs = append(errs, err)
		case p.Labels[v1alpha1.LabelManagedBy] != netpol.ManagedBy:
			errs = append(errs, fmt.Errorf("NetworkPolicy %s in namespace %s was not made by this command (no label %s=%s), so it is left alone: delete it, or apply what is printed under another name",
				p.Name, p.Namespace, v1alpha1.LabelManagedBy, netpol.ManagedBy))
		default:
			found[i] = p
		}
	}
	return found, errors.Join(errs...)
}

// merged is what is there with what it has to be.
func merged(found, want *networkingv1.NetworkPolicy) *networkingv1.NetworkPolicy {
	next := found.DeepCopy()
	next.Spec = *want.Spec.DeepCopy()
	if next.Labels == nil {
		next.Labels = map[string]string{}
	}
	maps.Copy(next.Labels, want.Labels)
	return next
}

// write applies policies. A default-deny comes last, so that nothing is cut off on
// the way.
func (o *Options) write(ctx context.Context, policies []*networkingv1.NetworkPolicy) error {
	found, err := o.live(ctx, policies)
	if err != nil {
		return err
	}
	var options []client.CreateOption
	var updates []client.UpdateOption
	suffix := ""
	switch o.dryRun {
	case operation.DryRunServer:
		options, updates, suffix = append(options, client.DryRunAll), append(updates, client.DryRunAll), " (server dry run)"
	case operation.DryRunClient:
		suffix = " (dry run)"
	}
	written := make([]*networkingv1.NetworkPolicy, len(policies))
	for i, want := range policies {
		done := "unchanged"
		switch found[i] {
		case nil:
			done, written[i] = "created", want.DeepCopy()
			if o.dryRun != operation.DryRunClient {
				err = kube.Explain(o.client.Create(ctx, written[i], options...), kube.Request{Verb: "create", Resource: "networkpolicies", Namespace: want.Namespace})
			}
		default:
			written[i] = merged(found[i], want)
			if equality.Semantic.DeepEqual(written[i], found[i]) {
				break
			}
			done = "configured"
			if o.dryRun != operation.DryRunClient {
				err = kube.Explain(o.client.Update(ctx, written[i], updates...), kube.Request{Verb: "update", Resource: "networkpolicies", Namespace: want.Namespace})
			}
		}
		if err != nil {
			return err
		}
		if o.output == output.Text {
			if _, err := fmt.Fprintf(o.streams.Out, "networkpolicy.networking.k8s.io/%s in namespace %s %s%s\n", want.Name, want.Namespace, done, suffix); err != nil {
				return err
			}
		}
	}
	if o.output == output.Text {
		return nil
	}
	for _, p := range written {
		p.TypeMeta = policies[0].TypeMeta
		p.ManagedFields = nil
	}
	return o.print(written)
}

// compare shows what apply would change.
func (o *Options) compare(ctx context.Context, policies []*networkingv1.NetworkPolicy) error {
	found, err := o.live(ctx, policies)
	if err != nil {
		return err
	}
	changed := 0
	for i, want := range policies {
		before := ""
		next := want
		if found[i] != nil {
			next = merged(found[i], want)
			if before, err = bare(found[i], want.TypeMeta); err != nil {
				return err
			}
		}
		after, err := bare(next, want.TypeMeta)
		if err != nil {
			return err
		}
		if before == after {
			continue
		}
		changed++
		text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
			A: difflib.SplitLines(before), B: difflib.SplitLines(after), Context: 3,
			FromFile: "live/" + want.Namespace + "/" + want.Name, ToFile: "wanted/" + want.Namespace + "/" + want.Name,
		})
		if err != nil {
			return fmt.Errorf("compare policies: %w", err)
		}
		if _, err := fmt.Fprint(o.streams.Out, o.colored(text)); err != nil {
			return err
		}
	}
	if changed > 0 {
		return fmt.Errorf("%d of %d policies differ: --apply instead of --diff writes them", changed, len(policies))
	}
	return nil
}

// bare is a policy without what the API server adds.
func bare(p *networkingv1.NetworkPolicy, kind metav1.TypeMeta) (string, error) {
	return output.Data(output.YAML, &networkingv1.NetworkPolicy{
		TypeMeta:   kind,
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, Labels: p.Labels, Annotations: p.Annotations},
		Spec:       p.Spec,
	})
}

func (o *Options) colored(diff string) string {
	palette := o.flags.Palette(o.streams.Out)
	var b strings.Builder
	for line := range strings.Lines(diff) {
		text := strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "+"):
			text = palette.Good(text)
		case strings.HasPrefix(line, "-"):
			text = palette.Bad(text)
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}
