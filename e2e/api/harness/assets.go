//go:build api

package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// modulePath is the first line of the go.mod at the root of the repository.
const modulePath = "module github.com/kubectl-valkey/kubectl-valkey"

// assetsVariable names the directory with the binaries, as with every user of
// envtest.
const assetsVariable = "KUBEBUILDER_ASSETS"

// Root is the root of the repository, looked for upwards from the working
// directory, which in a test is the package's.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the root of the repository: %w", err)
	}
	for d := dir; ; d = filepath.Dir(d) {
		text, err := os.ReadFile(filepath.Join(d, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), modulePath+"\n") {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("find the root of the repository: no directory above %s holds its go.mod", dir)
		}
	}
}

func assetsDir(root string) (string, error) {
	dir := os.Getenv(assetsVariable)
	if dir == "" {
		cmd := exec.Command("go", "run", "./e2e/cluster", "assets")
		cmd.Dir = root
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("find kube-apiserver, etcd and kubectl: 'go run ./e2e/cluster assets' failed: %w; fix what it says, or set %s to a directory that holds them\n%s",
				err, assetsVariable, strings.TrimSpace(stderr.String()))
		}
		dir = strings.TrimSpace(string(out))
	}
	var missing []error
	for _, name := range []string{"kube-apiserver", "etcd", "kubectl"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			missing = append(missing, err)
		}
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("the directory of kube-apiserver, etcd and kubectl is not complete; unset %s to have 'go run ./e2e/cluster assets' build it: %w",
			assetsVariable, errors.Join(missing...))
	}
	return dir, nil
}
