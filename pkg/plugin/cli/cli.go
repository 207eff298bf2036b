// Package cli implements "kubectl valkey cli": valkey-cli in a pod of a cluster,
// with TLS and user filled in.
package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	utilexec "k8s.io/client-go/util/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

const long = `Run valkey-cli in a pod of a cluster. On a TLS cluster it speaks TLS and verifies
the servers; redirects to other shards are followed. Without more it is interactive;
what follows "--" it carries out at once, and commands on standard input one by one.

It runs in the primary of shard 0 unless --shard or --node says where.

With --valkey-user, the password is asked for on the terminal, or, when standard input is
none, read as its first line. It is in no argument and no file. Without --valkey-user
whoever connects is the user "default", which only is let in while the cluster binds
no users.

It needs the permission to create pods/exec. Exit codes: 0 done, 1 failed, also when
the server answers a command after "--" with an error, 2 wrong usage, 130 interrupted.`

const example = `  # A prompt
  kubectl valkey cli demo

  # One command
  kubectl valkey cli demo -- GET greeting

  # As a user, on the primary of shard 2
  kubectl valkey cli demo --valkey-user app --shard 2

  # The password from a file, then commands
  cat password commands | kubectl valkey cli demo --valkey-user app`

// encrypted runs valkey-cli with the CA that the pod's server is to trust. Which of
// the files that is, a file beside them says, the CA first: a rotation changes it.
const encrypted = `read -r ca <` + objects.TLSDir + "/" + objects.TLSCurrentFile +
	` && exec valkey-cli -c --tls --cacert "` + objects.TLSDir + `/$ca" "$@"`

const container = "valkey"

// Options of "kubectl valkey cli".
type Options struct {
	access  *kube.Access
	flags   *output.Flags
	streams genericiooptions.IOStreams
	// client and run are made by Complete unless they are there.
	client client.WithWatch
	run    kube.Runner
	// terminal is how the person at it is asked; a test puts its own there.
	terminal terminal

	name, namespace string
	args            []string
	user            string
	node            string
	shard           int32
	anyShard        bool
}

// NewCommand returns the command.
func NewCommand(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	return (&Options{access: access, flags: flags, streams: streams}).command()
}

func (o *Options) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "cli NAME [--valkey-user USER] [--shard N|--node NODE] [-- COMMAND...]",
		DisableFlagsInUseLine: true,
		Short:                 "Run valkey-cli in a cluster",
		Long:                  long,
		Example:               example,
		ValidArgsFunction:     o.access.CompleteCluster,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Validate(cmd, args); err != nil {
				return err
			}
			if err := o.Complete(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.user, "valkey-user", "", "ACL user of the cluster to log in as; the password is asked for. (--user is kubectl's, for the API server.)")
	fs.StringVar(&o.node, "node", "", "Node whose pod to run in.")
	fs.Int32Var(&o.shard, "shard", 0, "Shard whose primary's pod to run in, from 0.")
	_ = cmd.RegisterFlagCompletionFunc("node", o.access.CompleteNodes)
	_ = cmd.RegisterFlagCompletionFunc("shard", o.access.CompleteShards)
	return cmd
}

// Validate checks arguments and flags.
func (o *Options) Validate(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	if dash < 0 {
		dash = len(args)
	}
	switch fs := cmd.Flags(); {
	case dash != 1:
		return exit.Usagef("cli takes the name of one cluster, and commands after --: kubectl valkey cli demo -- GET key; got %q", args)
	case fs.Changed("node") && fs.Changed("shard"):
		return exit.Usagef("--node and --shard both say where to run: give one of them")
	case o.shard < 0:
		return exit.Usagef("--shard is %d; shards count from 0", o.shard)
	case strings.HasPrefix(o.user, "-"):
		return exit.Usagef("--valkey-user %q is no user: give a name", o.user)
	default:
		o.anyShard = !fs.Changed("shard")
	}
	o.name, o.args = args[0], args[1:]
	for _, arg := range o.args {
		if arg == "-a" || arg == "--pass" || arg == "-u" {
			return exit.Usagef("%s would put a password where others see it: use --valkey-user, which asks for it", arg)
		}
		if !strings.HasPrefix(arg, "-") {
			break
		}
	}
	return nil
}

// Complete finds out where the cluster is, and what it is asked from.
func (o *Options) Complete() error {
	var err error
	if o.namespace, err = o.access.Namespace(); err != nil {
		return err
	}
	if o.run == nil {
		o.run = o.access.Run
	}
	if o.terminal == nil {
		o.terminal = newTerminal(o.streams)
	}
	if o.client == nil {
		o.client, err = o.access.Client(o.streams.ErrOut, o.flags.Palette(o.streams.ErrOut).Enabled())
	}
	return err
}

// Run runs valkey-cli.
func (o *Options) Run(ctx context.Context) error {
	s, err := inspect.Fetch(ctx, o.client, o.namespace, o.name)
	if err != nil {
		return err
	}
	pod, err := o.pick(s.NodeList())
	if err != nil {
		return err
	}
	c := kube.Command{
		Namespace: o.namespace, Pod: pod, Container: container, Argv: o.argv(s.Cluster),
		Stdout: o.streams.Out, Stderr: o.streams.ErrOut,
	}
	if err := o.terminal.serve(ctx, &c, o.user != "", len(o.args) > 0, o.run); err != nil {
		return o.explain(err, pod)
	}
	return nil
}

func (o *Options) explain(err error, pod string) error {
	var failed utilexec.CodeExitError
	if errors.As(err, &failed) {
		return fmt.Errorf("valkey-cli in pod %s ended with exit code %d", pod, failed.Code)
	}
	return err
}

// argv is the command line in the pod. It holds no secret: whoever may look into
// the pod sees it.
func (o *Options) argv(c *v1alpha1.ValkeyCluster) []string {
	argv := []string{"valkey-cli", "-c"}
	if c.Spec.TLS != nil {
		argv = []string{"sh", "-c", encrypted, "valkey-cli"}
	}
	if o.user != "" {
		argv = append(argv, "--user", o.user, "--askpass")
	}
	if len(o.args) > 0 {
		argv = append(argv, "-e") // else an error that the server answers would end with exit code 0
	}
	return append(argv, o.args...)
}

// pick chooses the pod to run in.
func (o *Options) pick(nodes []inspect.Node) (string, error) {
	var names []string
	best := ""
	for _, n := range nodes {
		names = append(names, n.Name)
		running := n.Pod == nil || n.Pod.Phase == "Running"
		switch {
		case o.node != "":
			if n.Name == o.node {
				return n.Name, nil
			}
		case !running || !o.anyShard && n.Shard != o.shard:
		case best == "" || n.Role == "primary" && n.Shard == o.shard:
			best = n.Name
		}
	}
	switch {
	case o.node != "":
		return "", fmt.Errorf("cluster %s has no node %q; it has %s", o.name, o.node, strings.Join(names, ", "))
	case best == "" && !o.anyShard:
		return "", fmt.Errorf("no pod of shard %s of cluster %s runs; see %s", strconv.Itoa(int(o.shard)), o.name, o.access.Command("valkey status "+o.name, o.namespace))
	case best == "":
		return "", fmt.Errorf("no pod of cluster %s runs; see %s", o.name, o.access.Command("valkey status "+o.name, o.namespace))
	}
	return best, nil
}
