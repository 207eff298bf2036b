// Package verifytls implements "kubectl valkey verify-tls": it reads a cluster and
// its Secret (subject.go), looks at every server with pkg/tlsprobe (live.go), and
// judges what was seen row by row with pure functions (rows.go, noderows.go).
package verifytls

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/certs"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/checklist"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/password"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

const long = `Prove that a cluster speaks TLS as it should, end to end.

The Secret is checked: type, keys, PEM, leaf first, key, CA, names, usages, chain,
dates. Then every node is asked, through the API server's port-forward: does its
certificate verify for its own name and for the Service's, is it the Secret's leaf,
does plaintext get no reply, is a client refused that trusts another CA, is no
client certificate demanded, does the bus speak TLS only, is replication up. At
last a cluster client that verifies names follows redirects to every shard.

Nothing is sent to a server whose certificate doesn't verify. Nothing is written;
keys that don't exist are read. An authentication error after a good handshake is
a pass for TLS. Replication and the way of a client can be looked at only by a user
who may run info and cluster|slots: --valkey-user, unless the default user is open.

Needs get on the ValkeyCluster and the Secret, list on ValkeyNodes or pods, and
create on pods/portforward, but with --direct, which dials the pods' IPs.

Exit codes: 0 every check passed or was skipped, 1 a check failed, 2 wrong usage,
124 a rotation did not land in time, 130 interrupted.`

const example = `  # Verify a cluster
  kubectl valkey verify-tls demo

  # As a user, so that nothing has to be skipped
  kubectl valkey verify-tls demo --valkey-user app --password-stdin < password.txt

  # After a rotation: wait until every node serves the new certificate, and verify
  kubectl valkey verify-tls demo --wait --timeout 3m

  # What clients outside Kubernetes see, too
  kubectl valkey verify-tls demo --external

  # In a pod of the Kubernetes cluster; for a program
  kubectl valkey verify-tls demo --direct -o json`

const defaultTimeout = 3 * time.Minute

// Options of "kubectl valkey verify-tls".
type Options struct {
	access  *kube.Access
	flags   *output.Flags
	streams genericiooptions.IOStreams
	clock   clock.WithTicker

	name          string
	namespace     string
	user          string
	passwordStdin bool
	password      string
	caFile        string
	ca            []byte
	clusterDomain string
	external      bool
	direct        bool
	wait          bool
	timeout       time.Duration
	output        string

	// client and pods are made by Complete unless they are there.
	client      client.WithWatch
	pods        pods
	dialOutside func(ctx context.Context, network, address string) (net.Conn, error)
}

// NewCommand returns the command.
func NewCommand(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams, clk clock.WithTicker) *cobra.Command {
	return (&Options{access: access, flags: flags, streams: streams, clock: clk}).command()
}

func (o *Options) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "verify-tls NAME [--wait] [--external] [-o FORMAT]",
		DisableFlagsInUseLine: true,
		Short:                 "Prove that a cluster speaks TLS as it should",
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
	fs := cmd.Flags()
	fs.StringVar(&o.user, "valkey-user", "", "ACL user of the cluster to log in as, with --password-stdin. (--user is kubectl's, for the API server.) Default: nobody, as whom an open default user answers.")
	fs.BoolVar(&o.passwordStdin, "password-stdin", false, "Read the user's password from stdin; on a terminal it is not shown.")
	fs.StringVar(&o.caFile, "ca-file", "", "File with the CA to verify nodes with. Default: ca.crt of the Secret.")
	fs.StringVar(&o.clusterDomain, "cluster-domain", "", "DNS domain of the Kubernetes cluster. Default: the one that the manager reports.")
	fs.BoolVar(&o.external, "external", false, "If true, also verify the names and ports that are announced outside Kubernetes, from here.")
	fs.BoolVar(&o.direct, "direct", false, "If true, dial the pods' IPs rather than through the API server.")
	fs.BoolVar(&o.wait, "wait", false, "If true, wait first until every node serves the Secret's certificate.")
	fs.DurationVar(&o.timeout, "timeout", defaultTimeout, "With --wait: how long to wait, for example 90s.")
	fs.StringVarP(&o.output, "output", "o", "", "Output format. One of: (json, yaml).")
	// The flags were just defined, so they can be completed.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{output.JSON, output.YAML}, cobra.ShellCompDirectiveNoFileComp))
	for _, flag := range []string{"valkey-user", "cluster-domain"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	return cmd
}

// Validate checks arguments and flags.
func (o *Options) Validate(args []string, fs *pflag.FlagSet) error {
	if len(args) != 1 {
		return exit.Usagef("verify-tls takes the name of one cluster, got %s; kubectl valkey status lists them", output.Arguments(args))
	}
	o.name = args[0]
	errs := []error{output.CheckFormat(o.output, output.JSON, output.YAML)}
	switch {
	case o.user == "" && o.passwordStdin:
		errs = append(errs, errors.New("--password-stdin needs --valkey-user: whose password is it?"))
	case o.user != "" && !o.passwordStdin:
		errs = append(errs, errors.New("--valkey-user needs --password-stdin: a password is never an argument"))
	}
	switch {
	case o.wait && o.timeout <= 0:
		errs = append(errs, fmt.Errorf("--timeout is %s; it must be above 0", o.timeout))
	case fs.Changed("timeout") && !o.wait:
		errs = append(errs, errors.New("--timeout needs --wait"))
	}
	if o.clusterDomain != "" {
		domain, err := settings.ParseClusterDomain(o.clusterDomain)
		errs = append(errs, err)
		o.clusterDomain = domain
	}
	return exit.UsageError(errors.Join(errs...))
}

// Complete reads files and finds out where to look.
func (o *Options) Complete(ctx context.Context) error {
	var err error
	if o.caFile != "" {
		if o.ca, err = os.ReadFile(o.caFile); err != nil {
			return fmt.Errorf("read --ca-file: %w", err)
		}
		if _, err := certs.Roots(o.ca); err != nil {
			return fmt.Errorf("--ca-file %s: %w", o.caFile, err)
		}
	}
	if o.passwordStdin {
		if o.password, err = password.Read(ctx, o.streams.In, o.streams.ErrOut, "Password of "+o.user+": "); err != nil {
			return err
		}
	}
	if o.namespace, err = o.access.Namespace(); err != nil {
		return err
	}
	if o.dialOutside == nil {
		o.dialOutside = (&net.Dialer{}).DialContext
	}
	if o.client != nil {
		return nil
	}
	o.client, err = o.access.Client(o.streams.ErrOut, o.flags.Palette(o.streams.ErrOut).Enabled())
	return err
}

// Run verifies, after a rotation has landed if that is to be waited for.
func (o *Options) Run(ctx context.Context) error {
	s, err := o.observe(ctx)
	if err != nil {
		return err
	}
	p, err := o.reach(s)
	if err != nil {
		return err
	}
	defer p.Close()
	if o.wait {
		if s, err = o.await(ctx, s, p); err != nil {
			return err
		}
	}
	report, err := o.verify(ctx, s, p)
	if err != nil {
		return err
	}
	if err := o.print(report); err != nil {
		return err
	}
	return report.failure()
}

func (o *Options) reach(s *subject) (pods, error) {
	switch {
	case o.pods != nil:
		return o.pods, nil
	case o.direct:
		return direct{s.nodes}, nil
	}
	return o.access.Forwarder(o.namespace)
}

// verify makes all checks.
func (o *Options) verify(ctx context.Context, s *subject, p pods) (*Report, error) {
	report := &Report{
		Namespace: o.namespace, Name: o.name, Secret: s.cluster.Spec.TLS.SecretRef, Certificate: s.certificate(o.clock.Now()),
	}
	report.Checks = append(clusterRows(s.cluster, o.access.Command("valkey status "+o.name+" -w", o.namespace)), s.secretRows()...)
	r := &checklist.Rows{}
	switch {
	case s.unlisted != nil:
		r.Fail(checkNodes, fmt.Sprintf("nodes are not checked: %v", s.unlisted), "ask for the permission")
	case len(s.nodes) == 0:
		r.Fail(checkNodes, "the cluster has no nodes yet", "verify it again once it is Active")
	case s.roots == nil:
		r.Skip(checkTrust, "nodes are not checked: "+s.rootless, "give the CA with --ca-file, or put it into the Secret's ca.crt")
	}
	report.Checks = append(report.Checks, r.List...)
	if len(r.List) == 0 {
		live, err := o.probe(ctx, s, p)
		if err != nil {
			return nil, err
		}
		report.Checks = append(report.Checks, live...)
	}
	report.Passed, report.Failed, report.Skipped = checklist.Count(report.Checks)
	return report, nil
}

func (o *Options) print(r *Report) error {
	var text string
	var err error
	if o.output == output.Text {
		text, err = r.text(o.flags.Palette(o.streams.Out))
	} else {
		text, err = output.Data(o.output, r)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(o.streams.Out, text)
	return err
}
