//go:build linux

// Package host checks and prepares the machine that the cluster runs on.
package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The space on disk that a run needs, in bytes: with an empty cache, and with
// a full one.
const (
	ColdSpace = 8 << 30
	WarmSpace = 2 << 30
)

// CheckRoot fails unless this process is root.
func CheckRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("the local cluster makes namespaces, mounts and cgroups, which takes root; run this with sudo or as root")
	}
	return nil
}

// CheckSpace fails when the file system of dir, which may not exist yet, has
// fewer than need bytes left.
func CheckSpace(dir string, need uint64) error {
	at := dir
	for {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) || at == "/" {
			break
		}
		at = filepath.Dir(at)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return fmt.Errorf("look at the free space of %s: %w", at, err)
	}
	if free := st.Bavail * uint64(st.Bsize); free < need {
		return fmt.Errorf("%s has %.1f GB left and %.0f GB are needed; free some space, or choose another cache with KUBECTL_VALKEY_CACHE",
			at, float64(free)/(1<<30), float64(need)/(1<<30))
	}
	return nil
}

// tools are the programs that the host itself must have, with their packages.
var tools = []struct{ program, pkg string }{
	{"debootstrap", "debootstrap"}, {"ip", "iproute2"}, {"unshare", "util-linux"}, {"nsenter", "util-linux"},
}

// InstallTools installs what is missing with apt-get, and says so.
func InstallTools(ctx context.Context, say func(string, ...any)) error {
	var missing []string
	for _, t := range tools {
		if _, err := exec.LookPath(t.program); err != nil {
			missing = append(missing, t.pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	say("installing %s with apt-get, because this machine lacks them", strings.Join(missing, ", "))
	for _, args := range [][]string{{"update"}, append([]string{"install", "--yes", "--no-install-recommends"}, missing...)} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w; install %s yourself and try again: %s",
				args[0], err, strings.Join(missing, " "), strings.TrimSpace(string(out)))
		}
	}
	return nil
}
