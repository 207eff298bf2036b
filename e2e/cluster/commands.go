//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/cluster"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/host"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/layout"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/node"
)

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "Run a real three-node Kubernetes on this machine",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return host.CheckRoot()
		},
	}
	root.AddCommand(upCommand(), downCommand(), statusCommand(), kubeconfigCommand(), loadCommand(), imagesCommand(),
		nodeCommand(), assetsCommand(), certManagerCommand(), initCommand())
	return root
}

// say prints progress to standard error, which leaves standard output to results.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func upCommand() *cobra.Command {
	return &cobra.Command{
		Use: "up", Short: "Start the cluster, or leave the healthy one that runs", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return cluster.Up(c.Context(), say) },
	}
}

func downCommand() *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "Remove all of the cluster but its logs and its cache", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return cluster.Down(c.Context(), say) },
	}
}

func statusCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "status", Short: "Show nodes, health and paths", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			st, err := cluster.Status(c.Context())
			if err != nil {
				return err
			}
			return printResult(c.OutOrStdout(), output, st, func(w io.Writer) { statusText(w, st) })
		},
	}
	addOutput(c, &output)
	return c
}

func kubeconfigCommand() *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig", Short: "Print the path of the administrator's kubeconfig", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := os.Stat(layout.Kubeconfig()); err != nil {
				return fmt.Errorf("there is no kubeconfig: %w; run the up command first", err)
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), layout.Kubeconfig())
			return err
		},
	}
}

func loadCommand() *cobra.Command {
	return &cobra.Command{
		Use: "load IMAGE.tar", Short: "Load a docker-archive file into every node", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return cluster.Load(c.Context(), say, args[0]) },
	}
}

func imagesCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "images", Short: "List the Valkey images that nodes have", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := cluster.Images(c.Context(), say)
			if err != nil {
				return err
			}
			return printResult(c.OutOrStdout(), output, list, func(w io.Writer) { imagesText(w, list.Images) })
		},
	}
	addOutput(c, &output)
	return c
}

func assetsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "assets", Short: "Print a directory with kube-apiserver, etcd, kubectl and Valkey for use on the host", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := cluster.Assets(c.Context(), say)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), dir)
			return err
		},
	}
}

func certManagerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cert-manager", Short: "Print a directory with cert-manager's controllers and CRDs for use on the host", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := cluster.CertManager(c.Context(), say)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), dir)
			return err
		},
	}
}

func nodeCommand() *cobra.Command {
	c := &cobra.Command{Use: "node", Short: "Disturb a node, or look into it"}
	shorts := map[string]string{
		"stop":           "Kill the node at once, as a power cut would",
		"start":          "Start a stopped node and wait until it is Ready",
		"partition":      "Cut the node off from the network",
		"heal":           "Connect it again",
		"pause-kubelet":  "Halt the node's kubelet; its pods go on",
		"resume-kubelet": "Let it go on",
		"pods-first":     "Let the node's own programs wait for its pods, to measure these",
	}
	for _, action := range slices.Sorted(maps.Keys(shorts)) {
		c.AddCommand(&cobra.Command{
			Use: action + " NAME", Short: shorts[action], Args: cobra.ExactArgs(1),
			RunE: func(c *cobra.Command, args []string) error {
				return cluster.OnNode(c.Context(), say, action, args[0])
			},
		})
	}
	c.AddCommand(&cobra.Command{
		Use: "exec NAME -- COMMAND [ARG…]", Short: "Run a command in the node's mount, PID and network namespaces", Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			cmd, err := cluster.NodeCommand(c.Context(), args[0], args[1:])
			if err != nil {
				return err
			}
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, c.OutOrStdout(), c.ErrOrStderr()
			return cmd.Run()
		},
	})
	return c
}

// initCommand is what a node's first process is called with; people don't.
func initCommand() *cobra.Command {
	return &cobra.Command{
		Use: node.InitCommand + " SPEC", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return node.Init(args[0], slog.New(slog.NewTextHandler(os.Stderr, nil)))
		},
	}
}

func addOutput(c *cobra.Command, output *string) {
	c.Flags().StringVarP(output, "output", "o", "", "output format: json, or text when empty")
}

func printResult(w io.Writer, output string, value any, text func(io.Writer)) error {
	switch output {
	case "":
		tw := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
		text(tw)
		return tw.Flush()
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(value)
	default:
		return fmt.Errorf("unknown output format %q; use json", output)
	}
}

func imagesText(w io.Writer, list []clusterctl.Image) {
	fmt.Fprintln(w, "IMAGE\tVERSION\tROLE")
	for _, i := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\n", i.Ref, i.Version, i.Role)
	}
}

func statusText(w io.Writer, st clusterctl.Status) {
	fmt.Fprintf(w, "health:\t%s\nkubeconfig:\t%s\nAPI server:\t%s\naudit log:\t%s\nlogs:\t%s\ncgroups:\t%s\n",
		st.Health, st.Kubeconfig, st.APIServer, st.AuditLog, st.Logs, st.Cgroups)
	for _, p := range st.Problems {
		fmt.Fprintf(w, "problem:\t%s\n", p)
	}
	if st.Health == clusterctl.StateDown {
		return
	}
	fmt.Fprintln(w, "\nNODE\tZONE\tIP\tREADY\tRUNNING\tPARTITIONED\tKUBELET PAUSED")
	for _, n := range st.Nodes {
		fmt.Fprintf(w, "%s\t%s\t%s\t%t\t%t\t%t\t%t\n", n.Name, n.Zone, n.IP, n.Ready, n.Running, n.Partitioned, n.KubeletPaused)
	}
	fmt.Fprintln(w)
	imagesText(w, st.Images)
}
