//go:build api

package manifests

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/api/harness"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/settings"
)

// menu publishes deploy/starter.yaml and reads it back as the manager would.
func menu(t *testing.T) settings.Catalog {
	t.Helper()
	server.MustKubectl(t, "apply", "-f", harness.DeployPath(t, "starter.yaml"))
	var configs v1alpha1.ValkeyConfigList
	var images v1alpha1.ValkeyImageList
	var roles v1alpha1.ValkeyRoleList
	for _, err := range []error{
		server.Client.List(t.Context(), &configs), server.Client.List(t.Context(), &images), server.Client.List(t.Context(), &roles),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c := settings.Catalog{
		Configs: map[string]*v1alpha1.ValkeyConfig{}, Images: map[string]*v1alpha1.ValkeyImage{}, Roles: map[string]*v1alpha1.ValkeyRole{},
	}
	for i := range configs.Items {
		c.Configs[configs.Items[i].Name] = &configs.Items[i]
	}
	for i := range images.Items {
		c.Images[images.Items[i].Name] = &images.Items[i]
	}
	for i := range roles.Items {
		c.Roles[roles.Items[i].Name] = &roles.Items[i]
	}
	return c
}

func TestEveryConfigOfTheMenuCanBeUsed(t *testing.T) {
	catalog := menu(t)
	for name, want := range map[string]struct{ cpu, memory string }{
		"standard": {"100m", "256Mi"}, "small": {"50m", "128Mi"}, "large": {"1", "4Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			resolved, problems := settings.Resolve(catalog, name)
			problems = append(problems, settings.Check(resolved)...)
			if len(problems) > 0 {
				t.Fatalf("problems: %v", problems)
			}
			if resolved.CPU.String() != want.cpu || resolved.Memory.String() != want.memory {
				t.Errorf("resources are %s and %s, want %s and %s", resolved.CPU, resolved.Memory, want.cpu, want.memory)
			}
			maxmemory, err := settings.ParseBytes(resolved.Valkey["maxmemory"])
			if err != nil {
				t.Fatal(err)
			}
			if memory := resolved.Memory.Value(); maxmemory <= memory/2 || maxmemory >= memory*9/10 {
				t.Errorf("maxmemory is %d of %d bytes, want more than half and room for buffers", maxmemory, memory)
			}
			if resolved.Valkey["maxmemory-policy"] != "allkeys-lru" {
				t.Errorf("maxmemory-policy is %q", resolved.Valkey["maxmemory-policy"])
			}
		})
	}
}

// A real server loads a file with the roles of the menu, and says what each allows.
func TestRolesOfTheMenuAllowWhatTheirNamesSay(t *testing.T) {
	catalog := menu(t)
	hash := acl.Hash("a password")
	input := acl.Input{Roles: catalog.Roles, OperatorHashes: []string{hash}, ReplicationHashes: []string{hash}}
	for name := range catalog.Roles {
		input.Bindings = append(input.Bindings, v1alpha1.ACLBinding{
			Username: name, PasswordHashes: []v1alpha1.PasswordHash{v1alpha1.PasswordHash(hash)},
			Permissions: []v1alpha1.Permission{{RoleRef: name, Keys: []v1alpha1.KeyPermission{{Pattern: "app:*", Access: v1alpha1.KeyReadWrite}}}},
		})
	}
	file, problems := acl.Render(input)
	if len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	ask := startValkey(t, file)

	// What every client library sends, and what a cluster client needs.
	connect := []string{
		"PING", "HELLO 3", "CLIENT SETINFO lib-name x", "CLIENT SETNAME x", "CLIENT TRACKING ON", "SELECT 0", "COMMAND COUNT", "INFO",
		"CLUSTER SLOTS", "CLUSTER SHARDS", "CLUSTER NODES", "CLUSTER INFO", "CLUSTER MYID", "ASKING", "READONLY", "READWRITE",
	}
	read := []string{"GET app:1", "HGETALL app:1", "SCAN 0", "TTL app:1", "EXISTS app:1"}
	write := []string{"SET app:1 x", "DEL app:1", "EXPIRE app:1 9", "BLPOP app:1 1", "MULTI", "EVAL x 1 app:1", "FCALL x 1 app:1", "WAIT 0 0"}
	// What reaches the keys of others, or the server.
	foreign := []string{"KEYS *", "FLUSHALL", "FLUSHDB", "SWAPDB 0 1", "FUNCTION FLUSH", "SCRIPT FLUSH", "CLIENT LIST", "CLIENT KILL ID 3", "CONFIG GET maxmemory", "SLOWLOG GET"}
	// What the manager owns.
	managed := []string{
		"CONFIG SET maxmemory 1", "ACL SETUSER x", "ACL LOAD", "CLUSTER RESET", "CLUSTER FORGET x", "CLUSTER ADDSLOTS 1", "CLUSTER SETSLOT 1 STABLE",
		"CLUSTER FAILOVER", "CLUSTER MIGRATESLOTS SLOTSRANGE 1 2 NODE x", "CLUSTER REPLICATE x", "REPLICAOF NO ONE", "SHUTDOWN", "DEBUG SLEEP 0", "MODULE LIST",
	}

	for role, want := range map[string]struct{ may, mayNot [][]string }{
		"read-only":  {may: [][]string{connect, read}, mayNot: [][]string{write[:len(write)-1], foreign, managed}},
		"read-write": {may: [][]string{connect, read, write}, mayNot: [][]string{foreign, managed}},
		"admin":      {may: [][]string{connect, read, write, foreign}, mayNot: [][]string{managed}},
	} {
		t.Run(role, func(t *testing.T) {
			for _, command := range slices.Concat(want.may...) {
				if got := ask("ACL DRYRUN " + role + " " + command); got != "OK" {
					t.Errorf("%s: %s", command, got)
				}
			}
			for _, command := range slices.Concat(want.mayNot...) {
				if got := ask("ACL DRYRUN " + role + " " + command); !strings.Contains(got, "has no permissions to run") {
					t.Errorf("%s is not refused: %s", command, got)
				}
			}
		})
	}
}

var defaultUser = regexp.MustCompile(`(?m)^user default .*$`)

// startValkey runs a server with a users file, and returns how to ask it.
func startValkey(t *testing.T, users string) func(command string) string {
	t.Helper()
	dir := t.TempDir()
	aclFile, socket := filepath.Join(dir, "users.acl"), filepath.Join(dir, "valkey.sock")
	// The test's own way in: the users of the file can't ask what others may do.
	users = defaultUser.ReplaceAllString(users, "user default on nopass +@all")
	if err := os.WriteFile(aclFile, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	var output strings.Builder
	cmd := exec.CommandContext(t.Context(), server.Program("valkey-server"),
		"--port", "0", "--unixsocket", socket, "--cluster-enabled", "yes", "--dir", dir, "--aclfile", aclFile, "--save", "")
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatalf("start valkey-server: %v", err)
	}
	exited := make(chan struct{})
	var failure error
	go func() {
		defer close(exited)
		failure = cmd.Wait()
	}()
	t.Cleanup(func() { <-exited }) // the test's context, done by now, has killed it

	ask := func(command string) string {
		out, err := exec.CommandContext(t.Context(), server.Program("valkey-cli"), append([]string{"-s", socket}, strings.Fields(command)...)...).CombinedOutput()
		if err != nil {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		select {
		case <-exited:
			return false, fmt.Errorf("it ended (%w): %s", failure, output.String())
		default:
			return ask("PING") == "PONG", nil
		}
	})
	if err != nil {
		t.Fatalf("valkey-server doesn't start: %v", err)
	}
	return ask
}
