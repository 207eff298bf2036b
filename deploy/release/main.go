// Command release packs what was built for a release: archives of the plugin, its
// manifest for krew, checksums. The same input gives the same bytes.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
)

func main() {
	root := &cobra.Command{Use: "release", Short: "Pack a release", SilenceUsage: true}
	root.AddCommand(archiveCommand(), krewCommand(), checksumsCommand())
	if err := root.Execute(); err != nil {
		os.Exit(1)
	}
}

func archiveCommand() *cobra.Command {
	var out, date string
	cmd := &cobra.Command{
		Use: "archive FILE...", Short: "Write a .tar.gz that holds files by their base names", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, files []string) error {
			at, err := time.Parse(time.RFC3339, date)
			if err != nil {
				return fmt.Errorf("--date: %w", err)
			}
			return writeArchive(out, files, at)
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "archive to write")
	cmd.Flags().StringVar(&date, "date", "", "time of every entry, RFC 3339")
	return cmd
}

func krewCommand() *cobra.Command {
	var template, dir, version, out string
	var incomplete bool
	cmd := &cobra.Command{
		Use: "krew", Short: "Write the plugin's manifest for krew", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return writeKrew(template, dir, version, out, incomplete) },
	}
	cmd.Flags().StringVar(&template, "template", "plugin-manifest/valkey.yaml", "template of the manifest")
	cmd.Flags().StringVar(&dir, "archives", "dist/release", "folder with the archives")
	cmd.Flags().StringVar(&version, "version", "", "version of the release, with a leading v")
	cmd.Flags().StringVar(&out, "out", "", "file to write")
	cmd.Flags().BoolVar(&incomplete, "incomplete", false, "let archives of some platforms be missing")
	return cmd
}

func checksumsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "checksums DIR", Short: "Write DIR/SHA256SUMS over all files of DIR", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return writeChecksums(args[0]) },
	}
}
