// Package report implements "kubectl valkey report": an archive of all that helps to
// understand a cluster, without its secrets.
package report

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

const long = `Write an archive with all that helps to understand a cluster: its objects and their
events, the menu, NetworkPolicies, and the logs of its pods and of the manager.

Secrets are left out: the content of Secrets is never even asked for, and passwords,
their hashes, private keys, tokens, environment variables and the values of foreign
annotations are removed from all else. Look through it before you send it on all the
same: names of your applications and of keys in log lines stay.

What may not be read is listed in missing.txt, with the permission that it needs.
Read access to the custom resources is enough for the most important part.`

const example = `  # Into a file named after cluster and time
  kubectl valkey report demo

  # Into this one
  kubectl valkey report demo --file demo.zip

  # With more of the logs
  kubectl valkey report demo --tail 20000`

// Options of "kubectl valkey report".
type Options struct {
	access  *kube.Access
	flags   *output.Flags
	streams genericiooptions.IOStreams
	clock   clock.PassiveClock
	// client and logs are made by Complete unless they are there.
	client client.Client
	logs   func(ctx context.Context, namespace, pod, container string, lines int64) ([]byte, error)

	name, namespace string
	file            string
	lines           int64
}

// NewCommand returns the command.
func NewCommand(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams, clk clock.PassiveClock) *cobra.Command {
	return (&Options{access: access, flags: flags, streams: streams, clock: clk}).command()
}

func (o *Options) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "report NAME [--file FILE]",
		DisableFlagsInUseLine: true,
		Short:                 "Write a support bundle without secrets",
		Long:                  long,
		Example:               example,
		ValidArgsFunction:     o.access.CompleteCluster,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Validate(args); err != nil {
				return err
			}
			if err := o.Complete(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.file, "file", "f", "", "Archive to write, .tar.gz or .zip. Default: valkey-report-NAMESPACE-NAME-TIME.tar.gz.")
	fs.Int64Var(&o.lines, "tail", 5000, "Lines of each log, counted from the end.")
	return cmd
}

// Validate checks arguments and flags.
func (o *Options) Validate(args []string) error {
	if len(args) != 1 {
		return exit.Usagef("report takes the name of one cluster, got %s; kubectl valkey status lists them", output.Arguments(args))
	}
	o.name = args[0]
	if o.file != "" && !isZip(o.file) && !isTar(o.file) {
		return exit.Usagef("--file %q: end its name in .tar.gz or .zip", o.file)
	}
	if o.lines <= 0 {
		return exit.Usagef("--tail is %d; it must be above 0", o.lines)
	}
	return nil
}

func isZip(name string) bool { return strings.HasSuffix(name, ".zip") }
func isTar(name string) bool {
	return strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")
}

// Complete finds out where the cluster is.
func (o *Options) Complete() error {
	var err error
	if o.namespace, err = o.access.Namespace(); err != nil {
		return err
	}
	if o.file == "" {
		o.file = fmt.Sprintf("valkey-report-%s-%s-%s.tar.gz", o.namespace, o.name, o.clock.Now().UTC().Format("20060102-150405"))
	}
	if o.logs == nil {
		o.logs = o.access.Logs
	}
	if o.client == nil {
		o.client, err = o.access.Client(o.streams.ErrOut, o.flags.Palette(o.streams.ErrOut).Enabled())
	}
	return err
}

// Run writes the archive.
func (o *Options) Run(ctx context.Context) error {
	b, err := o.collect(ctx)
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	pack := packTar
	if isZip(o.file) {
		pack = packZip
	}
	if err := pack(&buf, b.files, o.clock.Now()); err != nil {
		return fmt.Errorf("pack the report: %w", err)
	}
	// A report is for its writer's eyes first.
	out, err := os.OpenFile(o.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists already: name another file with --file", o.file)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	_, err = out.Write(buf.Bytes())
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if _, err := fmt.Fprintf(o.streams.Out, "%s written: %s, secrets removed\n", o.file, output.Plural(len(b.files), "file")); err != nil {
		return err
	}
	for _, line := range b.missing {
		if _, err := fmt.Fprintln(o.streams.ErrOut, "note: left out "+output.Clean(line)); err != nil {
			return err
		}
	}
	return nil
}

func packTar(w io.Writer, files []file, at time.Time) error {
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: "valkey-report/" + f.name, Mode: 0o600, Size: int64(len(f.content)), ModTime: at}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

func packZip(w io.Writer, files []file, at time.Time) error {
	archive := zip.NewWriter(w)
	for _, f := range files {
		out, err := archive.CreateHeader(&zip.FileHeader{Name: "valkey-report/" + f.name, Method: zip.Deflate, Modified: at})
		if err != nil {
			return err
		}
		if _, err := out.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}
