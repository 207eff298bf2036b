package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	utilexec "k8s.io/client-go/util/exec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/exit"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/plugintest"
)

// pod records what was run in it.
type pod struct {
	command kube.Command
	read    string
	fails   error
}

func (p *pod) run(_ context.Context, c kube.Command) error {
	p.command = c
	if c.Stdin != nil {
		content, err := io.ReadAll(c.Stdin)
		if err != nil {
			return err
		}
		p.read = string(content)
	}
	return p.fails
}

func build(c client.WithWatch, p *pod, ask func() ([]byte, error)) plugintest.Build {
	return func(access *kube.Access, flags *output.Flags, streams genericiooptions.IOStreams) *cobra.Command {
		return (&Options{access: access, flags: flags, streams: streams, client: c, run: p.run, terminal: &console{streams: streams, fd: -1, ask: ask}}).command()
	}
}

func start(t *testing.T, f *plugintest.Fixture, p *pod, ask func() ([]byte, error), in string, args ...string) (string, int) {
	t.Helper()
	s := plugintest.Start(t, build(plugintest.Client(f.Objects()...), p, ask), strings.NewReader(in), false, args...)
	code := s.Wait()
	return s.ErrOut.String(), code
}

func TestCommandLine(t *testing.T) {
	f := plugintest.Active("demo", 2, 1)
	tls := plugintest.Active("demo", 2, 1)
	tls.Cluster.Spec.TLS = &v1alpha1.TLS{SecretRef: "x"}
	failed := plugintest.Active("demo", 2, 1)
	failed.Pods[0].Status.Phase = corev1.PodFailed
	primary := f.Cluster.Status.Shards
	for _, tt := range []struct {
		name    string
		fixture *plugintest.Fixture
		args    []string
		pod     string
		argv    []string
	}{
		{"as it is", f, []string{"demo"}, primary[0].Primary, []string{"valkey-cli", "-c"}},
		{"a command", f, []string{"demo", "--", "GET", "-a"}, primary[0].Primary, []string{"valkey-cli", "-c", "-e", "GET", "-a"}},
		{"TLS", tls, []string{"demo"}, primary[0].Primary, []string{"sh", "-c", `read -r ca </etc/valkey/tls/current && exec valkey-cli -c --tls --cacert "/etc/valkey/tls/$ca" "$@"`, "valkey-cli"}},
		{"a user", f, []string{"demo", "--valkey-user", "app"}, primary[0].Primary, []string{"valkey-cli", "-c", "--user", "app", "--askpass"}},
		{"a shard", f, []string{"demo", "--shard", "1"}, primary[1].Primary, []string{"valkey-cli", "-c"}},
		{"a node", f, []string{"demo", "--node", primary[1].Replicas[0]}, primary[1].Replicas[0], []string{"valkey-cli", "-c"}},
		{"a primary that is dead", failed, []string{"demo"}, primary[0].Replicas[0], []string{"valkey-cli", "-c"}},
	} {
		p := &pod{}
		errOut, code := start(t, tt.fixture, p, nil, "", tt.args...)
		if code != 0 || errOut != "" || p.command.Pod != tt.pod || !slices.Equal(p.command.Argv, tt.argv) || p.command.Container != "valkey" {
			t.Errorf("%s: exit %d with %q: %v in %s, want %v in %s", tt.name, code, errOut, p.command.Argv, p.command.Pod, tt.argv, tt.pod)
		}
	}
}

// The password travels on standard input alone.
func TestPasswordsAreInNoArgument(t *testing.T) {
	const password = "correct horse"
	typed := func() ([]byte, error) { return []byte(password), nil }
	for name, tt := range map[string]struct {
		ask  func() ([]byte, error)
		in   string
		args []string
		read string
	}{
		"a terminal":            {typed, "", []string{"demo", "--valkey-user", "app", "--", "GET", "a"}, password + "\n"},
		"a pipe":                {nil, password + "\nGET a\n", []string{"demo", "--valkey-user", "app"}, password + "\nGET a\n"},
		"no password, a pipe":   {nil, "GET a\n", []string{"demo"}, "GET a\n"},
		"no password, terminal": {typed, "", []string{"demo", "--", "GET", "a"}, ""},
	} {
		p := &pod{}
		errOut, code := start(t, plugintest.Active("demo", 1, 0), p, tt.ask, tt.in, tt.args...)
		if code != 0 || p.read != tt.read {
			t.Errorf("%s: exit %d with %q, valkey-cli reads %q, want %q", name, code, errOut, p.read, tt.read)
		}
		if strings.Contains(strings.Join(p.command.Argv, " ")+errOut, password) {
			t.Errorf("%s: the password shows in %v or %q", name, p.command.Argv, errOut)
		}
	}
}

func TestFailures(t *testing.T) {
	f := plugintest.Active("demo", 1, 0)
	gone := plugintest.Active("demo", 1, 0)
	gone.Pods[0].Status.Phase = corev1.PodFailed
	for name, tt := range map[string]struct {
		fixture *plugintest.Fixture
		fails   error
		args    []string
		code    int
		want    string
	}{
		"no name":                {f, nil, nil, exit.Usage, "takes the name of one cluster"},
		"commands without --":    {f, nil, []string{"demo", "GET", "a"}, exit.Usage, "commands after --"},
		"node and shard":         {f, nil, []string{"demo", "--node", "x", "--shard", "0"}, exit.Usage, "give one of them"},
		"a password in the open": {f, nil, []string{"demo", "--", "-a", "secret"}, exit.Usage, "use --valkey-user"},
		"no such cluster":        {f, nil, []string{"other"}, exit.Failed, "other"},
		"no such node":           {f, nil, []string{"demo", "--node", "x"}, exit.Failed, "it has demo-3fa2c"},
		"no such shard":          {f, nil, []string{"demo", "--shard", "7"}, exit.Failed, "no pod of shard 7"},
		"nothing runs":           {gone, nil, []string{"demo"}, exit.Failed, "no pod of cluster demo runs"},
		"valkey-cli fails":       {f, utilexec.CodeExitError{Err: errors.New("x"), Code: 1}, []string{"demo"}, exit.Failed, "ended with exit code 1"},
		"exec is refused":        {f, plugintest.Forbidden("create", "pods/exec", plugintest.Namespace), []string{"demo"}, exit.Failed, "forbidden"},
	} {
		errOut, code := start(t, tt.fixture, &pod{fails: tt.fails}, nil, "", tt.args...)
		if code != tt.code || !strings.Contains(errOut, tt.want) {
			t.Errorf("%s: exit %d with %q, want %d and %q", name, code, errOut, tt.code, tt.want)
		}
	}
}
