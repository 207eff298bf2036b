// Package images builds the container images that the local cluster loads,
// all without a registry.
package images

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/kubectl-valkey/kubectl-valkey/deploy/image/ociimage"
)

// valkeyPrograms go into the image: the server's own, and what a person or a
// probe uses in the container.
var valkeyPrograms = []string{
	"/usr/bin/valkey-server", "/usr/bin/valkey-cli", "/usr/bin/valkey-benchmark",
	"/bin/sh", "/usr/bin/sleep", "/usr/bin/env", "/usr/bin/cat", "/usr/bin/chmod", "/usr/bin/ls", "/usr/bin/id", "/usr/bin/head",
	"/usr/bin/tail", "/usr/bin/grep", "/usr/bin/sed", "/usr/bin/timeout", "/usr/bin/date", "/usr/bin/sha256sum",
}

// ValkeyVersion asks the server of a Debian folder for its version.
func ValkeyVersion(ctx context.Context, root string) (string, error) {
	out, err := exec.CommandContext(ctx, "chroot", root, "/usr/bin/valkey-server", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask valkey-server for its version: %w", err)
	}
	return parseVersion(string(out))
}

var versionPattern = regexp.MustCompile(`\bv=([0-9]+\.[0-9]+\.[0-9]+\S*)`)

func parseVersion(output string) (string, error) {
	m := versionPattern.FindStringSubmatch(output)
	if m == nil {
		return "", fmt.Errorf("valkey-server printed no version: %q", output)
	}
	return m[1], nil
}

// Valkey builds the server's image from a Debian folder. The label makes the
// digest differ between builds of one version.
func Valkey(ctx context.Context, root, version, build string) (v1.Image, error) {
	files, err := valkeyFiles(ctx, root)
	if err != nil {
		return nil, err
	}
	return ociimage.Build(files, ociimage.Config{
		Arch: runtime.GOARCH, Entrypoint: []string{"valkey-server"}, User: "999:999",
		Env:    []string{"PATH=/usr/bin:/bin", "VALKEY_VERSION=" + version},
		Labels: map[string]string{"org.opencontainers.image.version": version, "kubectl-valkey/build": build},
	})
}

func valkeyFiles(ctx context.Context, root string) ([]ociimage.File, error) {
	files := []ociimage.File{
		// Debian merged these into /usr; programs name their loader by the old path.
		{Path: "/bin", Link: "usr/bin"},
		{Path: "/lib", Link: "usr/lib"},
		{Path: "/lib64", Link: "usr/lib64"},
		{Path: "/etc/passwd", Mode: 0o644, Content: []byte("root:x:0:0:root:/:/bin/sh\nvalkey:x:999:999:valkey:/:/bin/sh\n")},
		{Path: "/etc/group", Mode: 0o644, Content: []byte("root:x:0:\nvalkey:x:999:\n")},
		{Path: "/etc/nsswitch.conf", Mode: 0o644, Content: []byte("hosts: files dns\n")},
		{Path: "/tmp", Mode: 0o1777, Dir: true},
	}
	paths, err := withLibraries(ctx, root, valkeyPrograms)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		source, err := inside(ctx, root, path)
		if err != nil {
			return nil, err
		}
		files = append(files, ociimage.File{Path: path, Mode: 0o755, Source: source})
	}
	return files, nil
}

// withLibraries adds what the programs are linked to, and puts everything at
// its path below /usr.
func withLibraries(ctx context.Context, root string, programs []string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "chroot", append([]string{root, "ldd"}, programs...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("list the libraries of the Valkey programs: %w", err)
	}
	paths := slices.Clone(programs)
	paths = append(paths, parseLdd(string(out))...)
	for i, path := range paths {
		paths[i] = mergedUsr(path)
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
}

// parseLdd picks the files out of ldd's output, from lines such as
// "libc.so.6 => /lib/libc.so.6 (0x…)" and "/lib64/ld-linux.so.2 (0x…)".
func parseLdd(output string) []string {
	var paths []string
	for line := range strings.Lines(output) {
		for field := range strings.FieldsSeq(line) {
			if strings.HasPrefix(field, "/") && !strings.HasSuffix(field, ":") {
				paths = append(paths, field)
			}
		}
	}
	return paths
}

func mergedUsr(path string) string {
	for _, dir := range []string{"/bin/", "/lib/", "/lib64/", "/sbin/"} {
		if strings.HasPrefix(path, dir) {
			return "/usr" + path
		}
	}
	return path
}

// inside resolves a path of the folder, whose links may be absolute.
func inside(ctx context.Context, root, path string) (string, error) {
	out, err := exec.CommandContext(ctx, "chroot", root, "readlink", "-f", path).Output()
	if err != nil {
		return "", fmt.Errorf("find %s in %s: %w", path, root, err)
	}
	source := filepath.Join(root, strings.TrimSpace(string(out)))
	if _, err := os.Stat(source); err != nil {
		return "", fmt.Errorf("find %s: %w", path, err)
	}
	return source, nil
}
