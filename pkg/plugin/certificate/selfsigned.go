package certificate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// makeSecret prints a Secret for development, or writes it.
func (o *Options) makeSecret(ctx context.Context) error {
	data, err := certs.SelfSigned(o.names, o.clock.Now(), o.duration)
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: o.secretName},
		Type:       corev1.SecretTypeTLS,
		Data:       data,
	}
	if !o.apply {
		return o.printAll([]any{secret})
	}
	if o.dryRun == dryRunClient {
		return o.printSecret(secret, "created (dry run)")
	}
	done, err := o.write(ctx, secret)
	if err != nil {
		return err
	}
	if o.dryRun == dryRunServer {
		done += " (server dry run)"
	}
	return o.printSecret(secret, done)
}

// write creates the Secret. One that is there is replaced only when that was asked
// for: it may be somebody's real certificate.
func (o *Options) write(ctx context.Context, secret *corev1.Secret) (done string, err error) {
	dry := o.dryRun == dryRunServer
	var create []client.CreateOption
	var update []client.UpdateOption
	if dry {
		create, update = append(create, client.DryRunAll), append(update, client.DryRunAll)
	}
	err = o.client.Create(ctx, secret, create...)
	if !apierrors.IsAlreadyExists(err) {
		return "created", kube.Explain(err, kube.Request{Verb: "create", Resource: "secrets", Namespace: o.namespace})
	}
	if !o.overwrite {
		return "", fmt.Errorf("secret %s exists already in namespace %s: --overwrite replaces its content, --secret-name chooses another name", o.secretName, o.namespace)
	}
	var there corev1.Secret
	if err := kube.Get(ctx, o.client, client.ObjectKeyFromObject(secret), &there, "secrets"); err != nil {
		return "", err
	}
	if there.Type != corev1.SecretTypeTLS {
		return "", fmt.Errorf("secret %s in namespace %s has type %s, which can't be changed: delete it first, or choose another name with --secret-name", o.secretName, o.namespace, there.Type)
	}
	there.Data = secret.Data
	if err := o.client.Update(ctx, &there, update...); err != nil {
		return "", kube.Explain(err, kube.Request{Verb: "update", Resource: "secrets", Namespace: o.namespace})
	}
	return "configured", nil
}

// printSecret writes the line that kubectl writes. The Secret itself is printed only
// when a format asks for it.
func (o *Options) printSecret(secret *corev1.Secret, done string) error {
	secret.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	secret.ManagedFields = nil
	if o.output == output.JSON || o.output == output.YAML {
		return o.printAll([]any{secret})
	}
	flags := genericclioptions.NewPrintFlags(done)
	flags.OutputFormat = &o.output
	printer, err := flags.ToPrinter()
	if err != nil {
		return fmt.Errorf("print the Secret: %w", err)
	}
	return printer.PrintObj(secret, o.streams.Out)
}
