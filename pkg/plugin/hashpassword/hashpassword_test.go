package hashpassword

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// ofPassword is the SHA-256 of "password", as sha256sum prints it.
const ofPassword = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"

func build(_ *kube.Access, _ *output.Flags, streams genericiooptions.IOStreams) *cobra.Command {
	return NewCommand(streams)
}

func run(t *testing.T, in io.Reader, args ...string) (out, errOut string, code int) {
	t.Helper()
	plugintest.Kubeconfig(t)
	s := plugintest.Start(t, build, in, false, args...)
	code = s.Wait()
	return s.Out.String(), s.ErrOut.String(), code
}

func TestThePasswordPipedInIsHashed(t *testing.T) {
	for _, tt := range []struct {
		in   string
		args []string
		want string
	}{
		{"password", nil, ofPassword + "\n"},
		{"password\n", nil, ofPassword + "\n"},
		{"password\r\n", nil, ofPassword + "\n"},
		{"password", []string{"-o", "json"}, "{\n    \"passwordHash\": \"" + ofPassword + "\"\n}\n"},
		{"password", []string{"-o", "yaml"}, "passwordHash: " + ofPassword + "\n"},
	} {
		if out, errOut, code := run(t, strings.NewReader(tt.in), tt.args...); out != tt.want || errOut != "" || code != exit.OK {
			t.Errorf("%q: %q, %q, exit %d", tt.in, out, errOut, code)
		}
	}
}

func TestWhatIsNoPasswordIsRefused(t *testing.T) {
	for name, in := range map[string]string{
		"nothing": "", "an empty line": "\n", "two lines": "a\nb\n", "a file by mistake": strings.Repeat("x", 70<<10),
	} {
		if out, errOut, code := run(t, strings.NewReader(in)); code != exit.Failed || out != "" || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%s: %q, %q, exit %d", name, out, errOut, code)
		}
	}
}

func TestAPasswordAsAnArgumentIsRefusedAndNotRepeated(t *testing.T) {
	out, errOut, code := run(t, strings.NewReader("x"), "hunter2")
	if code != exit.Usage || out != "" || strings.Contains(errOut, "hunter2") {
		t.Errorf("%q, %q, exit %d", out, errOut, code)
	}
}

// typist types lines at a terminal that doesn't show them.
type typist struct {
	plugintest.Keyboard
	lines []string
}

func (p *typist) ReadHidden() (string, error) {
	if len(p.lines) == 0 {
		return "", errors.New("nothing is typed")
	}
	line := p.lines[0]
	p.lines = p.lines[1:]
	return line, nil
}

func TestAtATerminalThePasswordIsAskedForTwiceAndNotShown(t *testing.T) {
	out, errOut, code := run(t, &typist{lines: []string{"password", "password"}})
	if out != ofPassword+"\n" || errOut != "Password: \nOnce more: \n" || code != exit.OK {
		t.Errorf("%q, %q, exit %d", out, errOut, code)
	}
	out, errOut, code = run(t, &typist{lines: []string{"password", "passwort"}})
	if out != "" || !strings.Contains(errOut, "the passwords differ") || code != exit.Failed {
		t.Errorf("%q, %q, exit %d", out, errOut, code)
	}
}
