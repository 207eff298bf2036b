// Package endpoints implements "kubectl valkey endpoints".
package endpoints

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

const long = `Show how clients reach each node of a cluster: from inside Kubernetes, from outside
if external access is on, and what the nodes tell clients now, which is what a cluster
client follows at its first redirect.

It needs no more than read access to ValkeyClusters and ValkeyNodes. With --probe it
also connects to every node from where it runs, at the outside address if there is
one.

A node port is open on every machine of Kubernetes; without a domain the plugin can't
know their addresses and prints <node-address> (--host fills it in).

Exit codes: 0 printed (a way that is still pending is noted on stderr), 1 failed or,
with --probe, some node was not reached, 2 wrong usage, 130 interrupted.`

const example = `  # All ways to the cluster
  kubectl valkey endpoints demo

  # Can they be reached from here?
  kubectl valkey endpoints demo --probe

  # For a shell, and for a client library
  eval "$(kubectl valkey endpoints demo -o env)"
  kubectl valkey endpoints demo -o uri`

// Values of --from, and formats of this command only.
const (
	fromInside  = "inside"
	fromOutside = "outside"

	formatEnv = "env"
	formatURI = "uri"
)

// probeTimeout bounds a connection of --probe.
const probeTimeout = 3 * time.Second

// Options of "kubectl valkey endpoints".
type Options struct {
	access  *kube.Access
	flags   *output.Flags
	streams genericiooptions.IOStreams

	name, namespace    string
	output, from, host string
	probe              bool

	client client.Client
	dial   func(ctx context.Context, address string) error
}

// NewCommand returns the command.
func NewCommand(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	return newOptions(access, flags, streams).command()
}

func newOptions(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams) *Options {
	return &Options{access: access, flags: flags, streams: streams, dial: dial}
}

func dial(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

func (o *Options) command() *cobra.Command {
	cmd := &cobra.Command{
		Use: "endpoints NAME", Short: "Show how clients reach a cluster", Long: long, Example: example,
		DisableFlagsInUseLine: true, ValidArgsFunction: o.access.CompleteCluster,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(cmd.Flags(), args); err != nil {
				return exit.UsageError(err)
			}
			if err := o.complete(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.output, "output", "o", "", "Output format. One of: (wide, json, yaml, env, uri).")
	fs.StringVar(&o.from, "from", "", "With -o env and -o uri: where the client is, inside or outside. Default: outside if nodes direct clients there.")
	fs.StringVar(&o.host, "host", "", "Host to use for the ways from outside, for example the address of a machine of Kubernetes.")
	fs.BoolVar(&o.probe, "probe", false, "If true, connect to every node from here.")
	for flag, words := range map[string][]string{
		"output": {output.Wide, output.JSON, output.YAML, formatEnv, formatURI}, "from": {fromInside, fromOutside},
	} {
		// The flags were just defined, so they can be completed.
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	return cmd
}

func (o *Options) validate(fs *pflag.FlagSet, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("endpoints takes the name of one cluster, got %s; kubectl valkey status lists them", output.Arguments(args))
	}
	o.name = args[0]
	errs := []error{output.CheckFormat(o.output, output.Wide, output.JSON, output.YAML, formatEnv, formatURI)}
	switch o.from {
	case "", fromInside, fromOutside:
	default:
		errs = append(errs, fmt.Errorf("--from %q is not known: use %s, %s", o.from, fromInside, fromOutside))
	}
	short := o.output == formatEnv || o.output == formatURI
	if fs.Changed("from") && !short {
		errs = append(errs, errors.New("--from needs -o env or -o uri"))
	}
	if o.probe && short {
		errs = append(errs, errors.New("--probe does not go with -o env or -o uri"))
	}
	return errors.Join(errs...)
}

func (o *Options) complete() error {
	var err error
	if o.namespace, err = o.access.Namespace(); err != nil || o.client != nil {
		return err
	}
	o.client, err = o.access.Client(o.streams.ErrOut, o.flags.Palette(o.streams.ErrOut).Enabled())
	return err
}

func (o *Options) run(ctx context.Context) error {
	s, err := inspect.Fetch(ctx, o.client, o.namespace, o.name)
	if err != nil {
		return err
	}
	if s.Nodes.Err != nil {
		return s.Nodes.Err
	}
	r := build(s.Cluster, s.Nodes.Items, o.host)
	failed := 0
	if o.probe {
		failed = o.probeAll(ctx, &r)
	}
	if err := o.print(r); err != nil {
		return err
	}
	for _, n := range r.Nodes {
		if n.Pending != "" {
			if _, err := fmt.Fprintf(o.streams.ErrOut, "note: node %s can't be reached from outside yet: %s\n", n.Name, n.Pending); err != nil {
				return err
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d nodes were not reached from here", failed, len(r.Nodes))
	}
	return nil
}

func (o *Options) print(r Report) error {
	var text string
	switch o.output {
	case output.Text, output.Wide:
		return o.text(o.streams.Out, r)
	case formatEnv, formatURI:
		start := r.start(o.from)
		if len(start) == 0 {
			return errors.New("no node can be reached from outside yet; see what is missing with: " + o.access.Command("valkey endpoints "+r.Name, r.Namespace))
		}
		if text = uri(r, start) + "\n"; o.output == formatEnv {
			text = env(r, start)
		}
	default:
		var err error
		if text, err = output.Data(o.output, r); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(o.streams.Out, text)
	return err
}

// probeAll connects to every node at once and returns how many were not reached.
func (o *Options) probeAll(ctx context.Context, r *Report) int {
	var group sync.WaitGroup
	for i := range r.Nodes {
		n := &r.Nodes[i]
		at := n.Inside
		if n.Outside != nil {
			at = *n.Outside
		}
		if at.Host == anyMachine {
			n.Probe = "not tried: give --host with the address of a machine of Kubernetes"
			continue
		}
		group.Go(func() {
			n.Probe = reachable
			if err := o.dial(ctx, at.String()); err != nil {
				n.Probe = output.Clean(err.Error())
			}
		})
	}
	group.Wait()
	failed := 0
	for _, n := range r.Nodes {
		if n.Probe != reachable {
			failed++
		}
	}
	return failed
}

const reachable = "reachable"
