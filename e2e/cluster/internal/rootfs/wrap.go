// Package rootfs makes folders of Debian packages: the nodes' root file system
// and the source of the Valkey images.
package rootfs

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

type loader struct{ path, triplet string }

var loaders = map[string]loader{
	"amd64": {path: "lib64/ld-linux-x86-64.so.2", triplet: "x86_64-linux-gnu"},
	"arm64": {path: "lib/ld-linux-aarch64.so.1", triplet: "aarch64-linux-gnu"},
}

// Wrap writes a script that runs one of the folder's programs on the host with
// the folder's own libraries: the host's Debian is older, and a chroot would
// hide the host's files. It uses exec, so signals reach the program.
func Wrap(root, program, script string) error {
	text, err := wrapper(root, program, runtime.GOARCH)
	if err != nil {
		return err
	}
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		return fmt.Errorf("write the wrapper of %s: %w", program, err)
	}
	return nil
}

func wrapper(root, program, arch string) (string, error) {
	l, ok := loaders[arch]
	if !ok {
		return "", fmt.Errorf("the local cluster runs on amd64 and arm64, not on %s", arch)
	}
	libraries := filepath.Join(root, "lib", l.triplet) + ":" + filepath.Join(root, "usr/lib", l.triplet)
	return fmt.Sprintf("#!/bin/sh\nexec %s --argv0 %s --library-path %s %s \"$@\"\n",
		quote(filepath.Join(root, l.path)), quote(filepath.Base(program)), quote(libraries), quote(filepath.Join(root, program))), nil
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
