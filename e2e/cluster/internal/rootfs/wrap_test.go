package rootfs

import (
	"strings"
	"testing"
)

func TestWrapperNamesTheFoldersOwnLoaderAndLibraries(t *testing.T) {
	for arch, want := range map[string][]string{
		"amd64": {"exec '/d/lib64/ld-linux-x86-64.so.2' ", "/d/usr/lib/x86_64-linux-gnu", "--argv0 'valkey-server'", `'/d/usr/bin/valkey-server' "$@"`},
		"arm64": {"exec '/d/lib/ld-linux-aarch64.so.1' ", "/d/usr/lib/aarch64-linux-gnu"},
	} {
		got, err := wrapper("/d", "usr/bin/valkey-server", arch)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: no %q in %s", arch, w, got)
			}
		}
	}
	if _, err := wrapper("/d", "usr/bin/x", "riscv64"); err == nil {
		t.Error("an unknown processor is accepted")
	}
}

func TestPathsAreQuotedForTheShell(t *testing.T) {
	if got := quote("a'b c"); got != `'a'\''b c'` {
		t.Error(got)
	}
}
