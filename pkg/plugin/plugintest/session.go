package plugintest

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// Build makes the command of a session.
type Build func(*kube.Access, *output.Flags, genericiooptions.IOStreams) *cobra.Command

// Session is a command that runs in the background, in namespace team-a, as below
// the root command. KUBECONFIG has to lead nowhere, see Kubeconfig.
type Session struct {
	// Out and ErrOut are what the command has written.
	Out, ErrOut *Stream
	// Stop interrupts the command.
	Stop context.CancelFunc

	code chan int
}

// Start runs a command. What it reads comes from in; a Keyboard makes that a
// terminal.
func Start(t *testing.T, build Build, in io.Reader, terminal bool, args ...string) *Session {
	t.Helper()
	streams, out, errOut := Streams(in, terminal)
	access, flags := kube.NewAccess(), output.NewFlags(func(string) string { return "" })
	cmd := build(access, flags, streams)
	access.AddFlags(cmd.PersistentFlags())
	flags.AddFlags(cmd)
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{"--namespace", Namespace}, args...))
	ctx, stop := context.WithCancel(t.Context())
	s := &Session{Out: out, ErrOut: errOut, Stop: stop, code: make(chan int, 1)}
	go func() { s.code <- exit.Report(errOut, cmd.ExecuteContext(ctx)) }()
	return s
}

// Wait returns the exit code once the command has ended.
func (s *Session) Wait() int {
	defer s.Stop()
	return <-s.code
}

// Run runs a command to its end, reading nothing.
func Run(t *testing.T, build Build, terminal bool, args ...string) (out, errOut string, code int) {
	t.Helper()
	Kubeconfig(t)
	s := Start(t, build, strings.NewReader(""), terminal, args...)
	code = s.Wait()
	return s.Out.String(), s.ErrOut.String(), code
}

// Keyboard is a terminal on which somebody types a text.
type Keyboard struct{ io.Reader }

// Typing returns a Keyboard.
func Typing(text string) Keyboard { return Keyboard{strings.NewReader(text)} }

// TerminalSize makes a Keyboard an output.Sized.
func (Keyboard) TerminalSize() (width, height int, ok bool) { return 120, 40, true }
