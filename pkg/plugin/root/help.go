package root

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
)

// help is laid out as kubectl's: flags that every command has are listed by a
// command of their own, since there are more of them than of all others.
const help = `{{with (or .Long .Short)}}{{. | trimTrailingWhitespaces}}

{{end}}{{.UsageString}}`

const usage = `{{if .HasExample}}Examples:
{{.Example}}

{{end}}{{if .HasAvailableSubCommands}}Available Commands:{{range .Commands}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}

{{end}}{{if .LocalNonPersistentFlags.HasAvailableFlags}}Options:
{{.LocalNonPersistentFlags.FlagUsages | trimTrailingWhitespaces}}

{{end}}Usage:
  {{if .HasAvailableSubCommands}}{{.CommandPath}} COMMAND [options]{{else}}{{.UseLine}} [options]{{end}}

{{if .HasAvailableSubCommands}}Use "{{.CommandPath}} COMMAND --help" for more about a command.
{{end}}Use "{{.Root.CommandPath}} options" for the options of all commands, such as -n and --context.
`

func setHelp(root *cobra.Command) {
	root.SetHelpTemplate(help)
	root.SetUsageTemplate(usage)
	root.SetHelpCommand(&cobra.Command{
		Use:    "help [COMMAND]",
		Short:  "Show help for a command",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			found, _, err := cmd.Root().Find(args)
			if err != nil || found == cmd.Root() && len(args) > 0 {
				return unknownCommand(cmd.Root(), args[0])
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	})
}

func newOptionsCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:                   "options",
		DisableFlagsInUseLine: true,
		Short:                 "List the options that every command has",
		Long:                  "List the options that every command has. They are kubectl's own, and go after \"valkey\".",
		Example:               "  # All of them\n  kubectl valkey options",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Usagef("options takes no arguments, got %q", args)
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(streams.Out, "The following options can be passed to any command:\n\n", cmd.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}
