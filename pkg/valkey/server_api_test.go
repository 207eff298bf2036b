//go:build api

package valkey

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/acl"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/valkey/valkeytest"
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

// startServer starts node n of a test with the grants that the manager has.
func startServer(t *testing.T, n int) *server {
	t.Helper()
	dir := t.TempDir()
	s := &server{ip: valkeytest.Loopback(n)}
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
	s.process = valkeytest.Start(t, filepath.Join(dir, "log"), conf, "--cluster-announce-ip "+s.ip)
	valkeytest.Eventually(t, "server "+s.ip+" answers", func() error {
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
