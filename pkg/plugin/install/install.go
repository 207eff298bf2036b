// Package install implements "kubectl valkey install": it applies the manifests that
// the plugin carries.
package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/operation"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/version"
)

const long = `Install the manager: the CRDs, the namespace valkey-operator, RBAC and a Deployment.
The manifests are those of this plugin's own version; running it again brings them up
to date. The ConfigMap valkey-operator-config, which holds your settings, is written
once and then left as it is.

With --starter also a menu to begin with is published: an image, three configs and
three roles. What of it exists is left as it is.

It needs the rights of a cluster administrator. Nothing is removed by it; see the
page on installation for how to.`

const example = `  # See what would be written
  kubectl valkey install --dry-run=client -o yaml

  # Install, with a menu to begin with, and wait until the manager runs
  kubectl valkey install --starter --wait

  # With the image from a registry of yours
  kubectl valkey install --image registry.example.com/valkey/manager:v0.1.0`

const (
	defaultTimeout = 2 * time.Minute
	lookAgain      = time.Second
)

// Options of "kubectl valkey install".
type Options struct {
	access  *kube.Access
	flags   *output.Flags
	streams genericiooptions.IOStreams
	clock   clock.WithTicker
	// client is made by Complete unless it is there.
	client client.Client
	build  version.Info

	image          string
	starter        bool
	wait           bool
	timeout        time.Duration
	dryRun, output string
}

// NewCommand returns the command.
func NewCommand(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams, clk clock.WithTicker) *cobra.Command {
	return (&Options{access: access, flags: flags, streams: streams, clock: clk, build: version.Get()}).command()
}

func (o *Options) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "install [--starter] [--wait]",
		DisableFlagsInUseLine: true,
		Short:                 "Install or upgrade the manager",
		Long:                  long,
		Example:               example,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Validate(args, cmd.Flags()); err != nil {
				return err
			}
			if err := o.Complete(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.image, "image", "", "Image of the manager. Default: kubectl-valkey/manager with this plugin's version.")
	fs.BoolVar(&o.starter, "starter", false, "If true, also publish a menu to begin with.")
	fs.BoolVar(&o.wait, "wait", false, "If true, wait until the manager runs.")
	fs.DurationVar(&o.timeout, "timeout", defaultTimeout, "With --wait: how long to wait, for example 90s.")
	fs.StringVar(&o.dryRun, "dry-run", operation.DryRunNone, `Must be "none", "server" or "client". With client nothing is sent; with server it is sent, but not stored.`)
	fs.StringVarP(&o.output, "output", "o", "", "Output format. One of: (json, yaml, name).")
	for flag, words := range map[string][]string{
		"dry-run": {operation.DryRunNone, operation.DryRunServer, operation.DryRunClient},
		"output":  {output.JSON, output.YAML, output.Name},
	} {
		// The flags were just defined, so they can be completed.
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

// Validate checks arguments and flags.
func (o *Options) Validate(args []string, fs *pflag.FlagSet) error {
	errs := []error{output.CheckFormat(o.output, output.JSON, output.YAML, output.Name)}
	if len(args) > 0 {
		errs = append(errs, fmt.Errorf("install takes no arguments, got %q", args))
	}
	switch o.dryRun {
	case operation.DryRunNone, operation.DryRunClient, operation.DryRunServer:
	default:
		errs = append(errs, fmt.Errorf("--dry-run %q is not known: use none, server, client", o.dryRun))
	}
	switch {
	case o.wait && o.dryRun != operation.DryRunNone:
		errs = append(errs, errors.New("--wait and --dry-run don't go together: nothing is written that could be waited for"))
	case fs.Changed("timeout") && !o.wait:
		errs = append(errs, errors.New("--timeout needs --wait"))
	case o.timeout <= 0:
		errs = append(errs, fmt.Errorf("--timeout is %s; it must be above 0", o.timeout))
	}
	if strings.ContainsAny(o.image, " \t\n") || fs.Changed("image") && o.image == "" {
		errs = append(errs, fmt.Errorf("--image %q is no image: write one such as registry.example.com/valkey/manager:v1.2.3", o.image))
	}
	return exit.UsageError(errors.Join(errs...))
}

// Complete makes the client. A dry run of the client alone needs none.
func (o *Options) Complete() error {
	if o.client != nil || o.dryRun == operation.DryRunClient {
		return nil
	}
	var err error
	o.client, err = o.access.Client(o.streams.ErrOut, o.flags.Palette(o.streams.ErrOut).Enabled())
	return err
}

// result of one object.
type result struct {
	object *unstructured.Unstructured
	done   string
}

// Run applies the manifests.
func (o *Options) Run(ctx context.Context) error {
	objects, err := manifests(o.managerImage(), o.starter)
	if err != nil {
		return err
	}
	if o.dryRun == operation.DryRunClient {
		var all []result
		for _, object := range objects {
			all = append(all, result{object, "would be applied (dry run)"})
		}
		return o.print(all)
	}
	var all []result
	for _, object := range objects {
		done, err := o.apply(ctx, object)
		if err != nil {
			return errors.Join(err, o.printText(all))
		}
		all = append(all, result{object, done})
	}
	if err := o.print(all); err != nil || !o.wait {
		return err
	}
	return o.waitAvailable(ctx)
}

// apply writes one object, and leaves alone what belongs to the user.
func (o *Options) apply(ctx context.Context, object *unstructured.Unstructured) (string, error) {
	request := kube.Request{Verb: "patch", Resource: resource(object), Namespace: object.GetNamespace()}
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(object.GroupVersionKind())
	err := o.client.Get(ctx, client.ObjectKeyFromObject(object), before)
	there := err == nil
	switch {
	case apierrors.IsNotFound(err), there:
	default:
		return "", kube.Explain(err, kube.Request{Verb: "get", Resource: request.Resource, Namespace: request.Namespace})
	}
	if there && users(object) {
		return "left as it is", nil
	}
	options := []client.ApplyOption{client.FieldOwner(kube.FieldManager), client.ForceOwnership}
	suffix := ""
	if o.dryRun == operation.DryRunServer {
		options, suffix = append(options, client.DryRunAll), " (server dry run)"
	}
	object = object.DeepCopy()
	for {
		err = o.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), options...)
		// A kind whose CRD was written a moment ago is served a moment later.
		if !kube.NotInstalled(err) || suffix != "" {
			break
		}
		if err := o.pause(ctx); err != nil {
			return "", err
		}
	}
	switch {
	case suffix != "" && (apierrors.IsNotFound(err) || kube.NotInstalled(err)):
		// In a dry run the namespace and the CRDs that it needs are not there.
		return "would be created, not checked" + suffix, nil
	case err != nil:
		return "", kube.Explain(err, request)
	case !there:
		return "created" + suffix, nil
	case object.GetResourceVersion() != "" && object.GetResourceVersion() == before.GetResourceVersion():
		return "unchanged" + suffix, nil
	}
	return "configured" + suffix, nil
}

func (o *Options) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-o.clock.After(lookAgain):
		return nil
	}
}

func resource(object *unstructured.Unstructured) string {
	plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	return plural.Resource
}

// waitAvailable waits until the Deployment that was applied runs.
func (o *Options) waitAvailable(ctx context.Context) error {
	end := o.clock.Now().Add(o.timeout)
	for {
		var d appsv1.Deployment
		err := kube.Get(ctx, o.client, client.ObjectKey{Namespace: kube.ManagerNamespace, Name: kube.ManagerDeployment}, &d, "deployments")
		if err != nil {
			return err
		}
		s := d.Status
		if s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == s.Replicas && s.AvailableReplicas > 0 && s.UnavailableReplicas == 0 {
			_, err := fmt.Fprintln(o.streams.ErrOut, "The manager runs.")
			return err
		}
		if o.clock.Now().After(end) {
			return exit.Timeoutf("the manager does not run after %s: see kubectl describe pods -n %s; is the image %s where the Kubernetes nodes can pull it?", o.timeout, kube.ManagerNamespace, o.managerImage())
		}
		if err := o.pause(ctx); err != nil {
			return err
		}
	}
}

// managerImage is the image that was asked for, or that of this version.
func (o *Options) managerImage() string {
	switch {
	case o.image != "":
		return o.image
	case strings.HasPrefix(o.build.Version, "v"):
		return imageRepository + ":" + o.build.Version
	}
	return "" // a build without a version: what the manifests name
}

func (o *Options) print(all []result) error {
	if o.output == output.Text || o.output == output.Name {
		return o.printText(all)
	}
	var items []any
	var texts []string
	for _, r := range all {
		items = append(items, r.object.Object)
		text, err := output.Data(output.YAML, r.object.Object)
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	text := strings.Join(texts, "---\n")
	if o.output == output.JSON {
		var err error
		if text, err = output.Data(output.JSON, map[string]any{"apiVersion": "v1", "kind": "List", "items": items}); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(o.streams.Out, text)
	return err
}

func (o *Options) printText(all []result) error {
	for _, r := range all {
		gvk := r.object.GroupVersionKind()
		kind := strings.ToLower(gvk.Kind)
		if gvk.Group != "" {
			kind += "." + gvk.Group
		}
		line := kind + "/" + r.object.GetName()
		if o.output != output.Name {
			line += " " + r.done
		}
		if _, err := fmt.Fprintln(o.streams.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// users is whether an object is the users' own once it is there: the manager's
// settings and the menu.
func users(object *unstructured.Unstructured) bool {
	return slices.Contains([]string{"ConfigMap", "ValkeyImage", "ValkeyConfig", "ValkeyRole"}, object.GetKind())
}
