//go:build api

package valkey

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
)

const operatorPass = "operator-password"

// server is a real valkey-server on a loopback address of its own, because nodes
// always meet at the same port.
type server struct {
	ip      string
	process *os.Process
	// users is the server's ACL file.
	users string
}

// valkeyServer finds the server binary among those of the API-server tier, or on
// the PATH.
func valkeyServer(t *testing.T) string {
	t.Helper()
	if assets := os.Getenv("KUBEBUILDER_ASSETS"); assets != "" {
		if file := filepath.Join(assets, "valkey-server"); isFile(file) {
			return file
		}
	}
	file, err := exec.LookPath("valkey-server")
	if err != nil {
		t.Fatalf("no valkey-server in KUBEBUILDER_ASSETS or PATH: run make test-api, which builds it (%v)", err)
	}
	return file
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// loopback is an address that no other test process uses.
func loopback(n int) string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 64+pid>>8&63, pid&255, n)
}

// startServer starts node n of a test with the grants that the manager has.
func startServer(t *testing.T, n int) *server {
	t.Helper()
	dir := t.TempDir()
	s := &server{ip: loopback(n)}
	users := filepath.Join(dir, "users.acl")
	s.users = users
	grants := "+" + strings.Join(acl.OperatorCommands(), " +")
	rules := fmt.Sprintf("user default off resetpass resetkeys resetchannels -@all\nuser %s on >%s resetkeys resetchannels -@all %s\n"+
		"user reader on >reader resetkeys -@all +acl|log +info\nuser repl on nopass resetkeys -@all +psync +replconf +ping\n", acl.OperatorUser, operatorPass, grants)
	if err := os.WriteFile(users, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "valkey.conf")
	settings := fmt.Sprintf("port 6379\nbind %s\ncluster-enabled yes\ncluster-node-timeout 5000\ndir %s\naclfile %s\nsave \"\"\n"+
		"repl-diskless-sync-delay 0\nprimaryuser repl\nprimaryauth any\nloglevel warning\n", s.ip, dir, users)
	if err := os.WriteFile(conf, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	logFile, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(valkeyServer(t), conf, "--cluster-announce-ip "+s.ip)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	if err := cmd.Start(); err != nil {
		t.Fatalf("start valkey-server: %v", err)
	}
	s.process = cmd.Process
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = logFile.Close()
	})
	eventually(t, "server "+s.ip+" answers", func() error {
		node, err := NewDialer().Dial(t.Context(), s.target(), credentials())
		if err == nil {
			node.Close()
		}
		return err
	})
	return s
}

func (s *server) target() Target {
	return Target{Node: "node-" + s.ip, Address: s.ip + ":6379", PodIP: s.ip}
}

func (s *server) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := s.process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

func credentials() Credentials {
	return Credentials{Username: acl.OperatorUser, Password: operatorPass}
}

func (s *server) dial(t *testing.T) Node {
	t.Helper()
	node, err := NewDialer().Dial(t.Context(), s.target(), credentials())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	return node
}

// eventually asks until there is no error, for half a minute.
func eventually(t *testing.T, what string, ask func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("waited for: %s: %v", what, err)
		}
	}
}
