// Package certificate implements "kubectl valkey certificate": what cert-manager
// makes a cluster's Secret from (certmanager.go), a Secret for development
// (selfsigned.go), and the check of one that is there (check.go).
package certificate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/announce"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

const long = `Write what a cluster's TLS Secret is made from, with the names and usages that the
cluster needs. The cluster may exist already, or be created afterwards.

Without further flags these are manifests for cert-manager: a private CA in the
namespace, and the certificate that it signs. --issuer names an issuer that is
there, and leaves the CA out. It has to be one of a private CA: a public ACME issuer
can't validate names inside Kubernetes, and leaves ca.crt empty.

With --self-signed it is the Secret itself, for development: a certificate and the
CA that signed it, whose key is kept nowhere. --apply writes it to the API server.

With --check nothing is written: a file with a Secret or with PEM is checked as the
manager would.

Exit codes: 0 done (with --check: every check passed), 1 failed, 2 wrong usage, 130
interrupted.`

const example = `  # With cert-manager and a private CA of its own
  kubectl valkey certificate demo | kubectl apply -f -
  kubectl wait --for=condition=Ready certificate/demo-tls
  kubectl valkey create demo --config standard --shards 3 --replicas 1 --tls-secret demo-tls

  # With an issuer that is there
  kubectl valkey certificate demo --issuer corp-ca --issuer-kind ClusterIssuer | kubectl apply -f -

  # For development, without cert-manager
  kubectl valkey certificate demo --self-signed --apply
  kubectl valkey create demo --config standard --shards 3 --replicas 1 --tls-secret demo-tls

  # Before a Secret is put in place
  kubectl valkey certificate demo --check secret.yaml`

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// Lifetimes of the documentation.
const (
	defaultDuration    = 2160 * time.Hour
	defaultRenewBefore = 360 * time.Hour
)

// Options of "kubectl valkey certificate".
type Options struct {
	access  *kube.Access
	flags   *output.Flags
	streams genericiooptions.IOStreams
	clock   clock.PassiveClock

	name          string
	namespace     string
	secretName    string
	clusterDomain string
	dnsNames      []string
	duration      time.Duration
	renewBefore   time.Duration
	issuer        issuer
	selfSigned    bool
	apply         bool
	overwrite     bool
	dryRun        string
	check         string
	output        string

	names certs.Names
	// client is made by Complete unless it is there.
	client client.WithWatch
}

// NewCommand returns the command.
func NewCommand(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams, clk clock.PassiveClock) *cobra.Command {
	return (&Options{access: access, flags: flags, streams: streams, clock: clk}).command()
}

func (o *Options) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "certificate NAME [--issuer ISSUER | --self-signed [--apply] | --check FILE]",
		DisableFlagsInUseLine: true,
		Short:                 "Write or check what a cluster's TLS Secret is made from",
		Long:                  long,
		Example:               example,
		ValidArgsFunction:     o.access.CompleteCluster,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Validate(args, cmd.Flags()); err != nil {
				return err
			}
			if err := o.Complete(cmd.Context()); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *Options) addFlags(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&o.secretName, "secret-name", "", "Name of the Secret. Default: the one that the cluster names, else NAME-tls.")
	fs.StringVar(&o.clusterDomain, "cluster-domain", "", "DNS domain of the Kubernetes cluster. Default: the one that the manager reports, else cluster.local.")
	fs.StringArrayVar(&o.dnsNames, "dns-name", nil, "Further name for the certificate; may be repeated. External hostnames of a cluster that exists are there by themselves.")
	fs.DurationVar(&o.duration, "duration", defaultDuration, "How long the certificate is valid.")
	fs.DurationVar(&o.renewBefore, "renew-before", defaultRenewBefore, "How long before its end cert-manager renews it.")
	fs.StringVar(&o.issuer.Name, "issuer", "", "Issuer of cert-manager that is there. Default: one of a private CA, which is written too.")
	fs.StringVar(&o.issuer.Kind, "issuer-kind", "Issuer", "Kind of --issuer, for example ClusterIssuer.")
	fs.StringVar(&o.issuer.Group, "issuer-group", "cert-manager.io", "API group of --issuer.")
	fs.BoolVar(&o.selfSigned, "self-signed", false, "If true, make a Secret for development rather than manifests for cert-manager.")
	fs.BoolVar(&o.apply, "apply", false, "With --self-signed: write the Secret to the API server.")
	fs.BoolVar(&o.overwrite, "overwrite", false, "With --apply: replace the content of a Secret that is there.")
	fs.StringVar(&o.dryRun, "dry-run", dryRunNone, `With --apply: must be "none", "server" or "client". With client nothing is sent; with server it is sent, but not stored.`)
	fs.StringVar(&o.check, "check", "", "File to check: a Secret as YAML or JSON, or PEM; - is stdin.")
	fs.StringVarP(&o.output, "output", "o", "", "Output format. One of: (json, yaml); with --apply also name.")
	// The flags were just defined, so they can be completed.
	for flag, words := range map[string][]string{
		"output":      {output.JSON, output.YAML, output.Name},
		"dry-run":     {dryRunNone, dryRunServer, dryRunClient},
		"issuer-kind": {"Issuer", "ClusterIssuer"},
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
}

// Validate checks arguments and flags.
func (o *Options) Validate(args []string, fs *pflag.FlagSet) error {
	if len(args) != 1 {
		return exit.Usagef("certificate takes the name of one cluster, got %s; the cluster need not exist yet", output.Arguments(args))
	}
	o.name = args[0]
	formats := []string{output.JSON, output.YAML}
	if o.apply {
		formats = append(formats, output.Name)
	}
	errs := []error{kube.CheckClusterName(o.name), output.CheckFormat(o.output, formats...)}
	need := func(flag, needed string, given bool) {
		if fs.Changed(flag) && !given {
			errs = append(errs, fmt.Errorf("--%s needs --%s", flag, needed))
		}
	}
	need("apply", "self-signed: manifests for cert-manager are applied by kubectl apply -f -, so --apply", o.selfSigned)
	need("overwrite", "apply", o.apply)
	need("dry-run", "apply", o.apply)
	need("issuer-kind", "issuer", o.issuer.Name != "")
	need("issuer-group", "issuer", o.issuer.Name != "")
	if o.check != "" && (o.selfSigned || o.issuer.Name != "") || o.selfSigned && o.issuer.Name != "" {
		errs = append(errs, errors.New("--issuer, --self-signed and --check don't go together: choose one"))
	}
	switch o.dryRun {
	case dryRunNone, dryRunClient, dryRunServer:
	default:
		errs = append(errs, fmt.Errorf("--dry-run %q is not known: use none, server, client", o.dryRun))
	}
	switch {
	case o.duration < time.Hour:
		errs = append(errs, fmt.Errorf("--duration is %s; it must be at least 1h", o.duration))
	case o.renewBefore <= 0 || o.renewBefore >= o.duration && !o.selfSigned:
		errs = append(errs, fmt.Errorf("--renew-before is %s; it must be above 0 and below the duration of %s", o.renewBefore, o.duration))
	}
	if o.secretName == objects.TLSSecretName(o.name) {
		errs = append(errs, fmt.Errorf("--secret-name must not be %s: that is the manager's own copy", o.secretName))
	}
	if o.clusterDomain != "" {
		domain, err := settings.ParseClusterDomain(o.clusterDomain)
		errs = append(errs, err)
		o.clusterDomain = domain
	}
	return exit.UsageError(errors.Join(errs...))
}

// Complete takes from the cluster, if there is one that can be read, what was not
// given.
func (o *Options) Complete(ctx context.Context) error {
	var err error
	if o.namespace, err = o.access.Namespace(); err != nil {
		return err
	}
	cluster, err := o.cluster(ctx)
	if err != nil {
		return err
	}
	if o.clusterDomain == "" {
		o.clusterDomain = domainOf(cluster)
	}
	o.names = certs.Names{Service: objects.ServiceDNSName(o.name, o.namespace, o.clusterDomain), External: o.dnsNames}
	for shard := range cluster.Spec.Shards {
		if host := announce.ShardHostname(cluster.Spec.ExternalAccess, shard); host != "" {
			o.names.External = append(o.names.External, host)
		}
	}
	switch {
	case o.secretName != "":
	case cluster.Spec.TLS != nil:
		o.secretName = cluster.Spec.TLS.SecretRef
	default:
		o.secretName = o.name + "-tls"
	}
	return nil
}

// cluster is empty when there is none, and when none can be asked for: the
// manifests are the same, so only what would be written needs the API server.
func (o *Options) cluster(ctx context.Context) (*v1alpha1.ValkeyCluster, error) {
	cluster := &v1alpha1.ValkeyCluster{}
	if o.client == nil {
		c, err := o.access.Client(o.streams.ErrOut, o.flags.Palette(o.streams.ErrOut).Enabled())
		if err != nil {
			return cluster, o.without(ctx, err)
		}
		o.client = c
	}
	err := kube.Get(ctx, o.client, client.ObjectKey{Namespace: o.namespace, Name: o.name}, cluster, "valkeyclusters")
	switch {
	case err == nil:
		if cluster.Spec.TLS == nil {
			return cluster, o.note("cluster %s exists and has no TLS, which is chosen when a cluster is created: the certificate is for another one of that name", o.name)
		}
		return cluster, nil
	case apierrors.IsNotFound(err):
		return &v1alpha1.ValkeyCluster{}, nil
	}
	return &v1alpha1.ValkeyCluster{}, o.without(ctx, err)
}

// without goes on without the cluster where that is no loss.
func (o *Options) without(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if o.apply && o.dryRun != dryRunClient {
		return err
	}
	return o.note("cluster %s was not looked at, so its Secret's name and its external hostnames are not known: %v", o.name, err)
}

func (o *Options) note(format string, args ...any) error {
	_, err := fmt.Fprintln(o.streams.ErrOut, "note: "+output.Clean(fmt.Sprintf(format, args...)))
	return err
}

// Run writes or checks.
func (o *Options) Run(ctx context.Context) error {
	switch {
	case o.check != "":
		return o.checkFile()
	case o.selfSigned:
		return o.makeSecret(ctx)
	}
	return o.printAll(o.certManager())
}
