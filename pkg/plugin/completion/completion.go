// Package completion implements "kubectl valkey completion".
package completion

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
)

// shim is the executable that kubectl looks for on the PATH, under the name
// kubectl_complete-valkey, when it completes "kubectl valkey". kubectl passes the
// words after "valkey".
const shim = `#!/usr/bin/env sh
# Completes "kubectl valkey ...": kubectl runs this when it stands on the PATH as
# kubectl_complete-valkey.
exec kubectl-valkey __complete "$@"
`

const long = `Print a script that completes commands, flags and names in a shell.

For "kubectl valkey <TAB>", kubectl itself must be set up for completion, and it
needs a small executable named kubectl_complete-valkey on the PATH. Print it with
"kubectl valkey completion shim", as the example shows.

The scripts for the shells complete the program's own name, kubectl-valkey.`

const example = `  # Complete "kubectl valkey <TAB>": once, into any folder on the PATH
  kubectl valkey completion shim > /usr/local/bin/kubectl_complete-valkey
  chmod +x /usr/local/bin/kubectl_complete-valkey

  # Complete "kubectl-valkey <TAB>" in this bash
  source <(kubectl valkey completion bash)

  # In every zsh
  kubectl valkey completion zsh > "${fpath[1]}/_kubectl-valkey"

  # In every fish
  kubectl valkey completion fish > ~/.config/fish/completions/kubectl-valkey.fish`

// targets are what a script can be printed for.
var targets = []string{"bash", "zsh", "fish", "powershell", "shim"}

// Options of "kubectl valkey completion".
type Options struct {
	streams genericiooptions.IOStreams
	root    *cobra.Command
	target  string
}

// NewCommand returns the command.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &Options{streams: streams}
	return &cobra.Command{
		Use:                   "completion (" + strings.Join(targets, "|") + ")",
		DisableFlagsInUseLine: true,
		Short:                 "Print a script for completion in a shell",
		Long:                  long,
		Example:               example,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return targets, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(cmd, args); err != nil {
				return err
			}
			return o.Run()
		},
	}
}

// Complete takes the shell from the arguments.
func (o *Options) Complete(cmd *cobra.Command, args []string) error {
	o.root = cmd.Root()
	if len(args) != 1 {
		return exit.Usagef("name what to complete for, one of %s: kubectl valkey completion bash", strings.Join(targets, ", "))
	}
	o.target = args[0]
	return nil
}

// Run prints the script.
func (o *Options) Run() error {
	script := map[string]func(io.Writer) error{
		"bash":       func(w io.Writer) error { return o.root.GenBashCompletionV2(w, true) },
		"zsh":        o.root.GenZshCompletion,
		"fish":       func(w io.Writer) error { return o.root.GenFishCompletion(w, true) },
		"powershell": o.root.GenPowerShellCompletionWithDesc,
		"shim": func(w io.Writer) error {
			_, err := io.WriteString(w, shim)
			return err
		},
	}[o.target]
	if script == nil {
		return exit.Usagef("can't complete for %q: use one of %s", o.target, strings.Join(targets, ", "))
	}
	if err := script(o.streams.Out); err != nil {
		return fmt.Errorf("write completion script: %w", err)
	}
	return nil
}
