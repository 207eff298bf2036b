//go:build linux

package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/apt"
	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/internal/proc"
)

// Suite is a Debian release with the packages that a folder needs.
type Suite struct {
	Name string
	// Packages are installed with their dependencies.
	Packages []string
	// Must are programs that have to be there afterwards, whatever
	// debootstrap's exit code was.
	Must []string
}

// Node is the suite that nodes run from. It has the newest Valkey, too.
func Node() Suite {
	return Suite{
		Name: "forky",
		Packages: []string{
			"etcd-server", "containerd", "runc", "containernetworking-plugins", "iptables", "ipset", "openssl",
			"valkey-server", "valkey-tools", "iproute2", "procps", "kubectl", "conntrack", "nftables", "kmod", "ca-certificates",
		},
		Must: []string{
			"usr/bin/etcd", "usr/bin/containerd", "usr/bin/ctr", "usr/sbin/runc", "usr/lib/cni/bridge", "usr/sbin/iptables",
			"usr/sbin/ipset", "usr/bin/valkey-server", "usr/bin/valkey-cli", "usr/bin/kubectl", "usr/sbin/ip",
		},
	}
}

// OldValkey is the suite with a Valkey older than 9.
func OldValkey() Suite {
	return Suite{
		Name:     "trixie",
		Packages: []string{"valkey-server", "valkey-tools"},
		Must:     []string{"usr/bin/valkey-server", "usr/bin/valkey-cli", "usr/bin/valkey-benchmark"},
	}
}

// Fetch fills dir by debootstrap from the machine's own mirror. It runs in mount
// and PID namespaces of its own, so that a killed run leaves neither mounts nor
// processes.
func (s Suite) Fetch(ctx context.Context, dir, logFile string) error {
	mirror, err := apt.Mirror()
	if err != nil {
		return err
	}
	script, err := script(s.Name)
	if err != nil {
		return err
	}
	log, err := os.Create(logFile)
	if err != nil {
		return fmt.Errorf("open debootstrap's log: %w", err)
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "debootstrap",
		"--arch="+runtime.GOARCH, "--variant=minbase", "--include="+strings.Join(s.Packages, ","), s.Name, dir, mirror, script)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = proc.DieWithParent()
	runErr := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// etcd-server's set-up fails in a folder without systemd on some
	// versions, although its program works: look at the result instead.
	for _, program := range s.Must {
		if _, err := os.Lstat(filepath.Join(dir, program)); err != nil { // links lead into the folder
			return fmt.Errorf("debootstrap %s without /%s (%w); see %s", s.Name, program, errors.Join(runErr, err), logFile)
		}
	}
	return clean(dir)
}

// script is debootstrap's recipe for the suite. A debootstrap that is older
// than the suite has none of that name: sid's serves.
func script(suite string) (string, error) {
	for _, name := range []string{suite, "sid"} {
		path := filepath.Join("/usr/share/debootstrap/scripts", name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("look for debootstrap's script: %w", err)
		}
	}
	return "", fmt.Errorf("debootstrap knows neither %s nor sid; install a newer debootstrap", suite)
}

// clean drops what nodes never read: it would fill the cache.
func clean(dir string) error {
	for _, path := range []string{"var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"} {
		if err := os.RemoveAll(filepath.Join(dir, path)); err != nil {
			return fmt.Errorf("clean %s: %w", dir, err)
		}
	}
	return nil
}
