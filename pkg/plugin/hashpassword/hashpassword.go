// Package hashpassword implements "kubectl valkey hash-password".
package hashpassword

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/password"
)

const long = `Print the hash of a password for the passwordHashes of a binding: its SHA-256 in
lower-case hex. Kubernetes is not asked.

On a terminal the password is asked for twice and not shown; otherwise it is what
is piped in, without the line break at its end. It is never an argument, which
others on the machine could see.

Exit codes: 0 printed, 1 failed, 2 wrong usage, 130 interrupted.`

const example = `  # Type it
  kubectl valkey hash-password

  # Pipe it in
  kubectl valkey hash-password < password.txt`

// Options of "kubectl valkey hash-password".
type Options struct {
	streams genericiooptions.IOStreams
	output  string
}

// Hash is what is printed as JSON or YAML.
type Hash struct {
	PasswordHash string `json:"passwordHash"`
}

// NewCommand returns the command.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return (&Options{streams: streams}).command()
}

func (o *Options) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "hash-password [-o FORMAT]",
		DisableFlagsInUseLine: true,
		Short:                 "Print the hash of a password for a binding",
		Long:                  long,
		Example:               example,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Validate(args); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "Output format. One of: (json, yaml).")
	// The flag was just defined, so it can be completed.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{output.JSON, output.YAML}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// Validate refuses arguments without repeating them: one may be a password.
func (o *Options) Validate(args []string) error {
	if len(args) > 0 {
		return exit.Usagef("hash-password takes no arguments: a password in one could be seen by others; type it when asked, or pipe it in")
	}
	return exit.UsageError(output.CheckFormat(o.output, output.JSON, output.YAML))
}

// Run reads the password and prints its hash.
func (o *Options) Run(ctx context.Context) error {
	typed, err := password.Read(ctx, o.streams.In, o.streams.ErrOut, "Password: ")
	if err != nil {
		return err
	}
	if password.IsTerminal(o.streams.In) {
		again, err := password.Read(ctx, o.streams.In, o.streams.ErrOut, "Once more: ")
		if err != nil {
			return err
		}
		if typed != again {
			return errors.New("the passwords differ: try again")
		}
	}
	text := acl.Hash(typed) + "\n"
	if o.output != output.Text {
		if text, err = output.Data(o.output, Hash{acl.Hash(typed)}); err != nil {
			return err
		}
	}
	_, err = fmt.Fprint(o.streams.Out, text)
	return err
}
