package images

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVersionIsReadFromTheServersOwnWords(t *testing.T) {
	got, err := parseVersion("Valkey server v=9.1.2 sha=00000000:0 malloc=jemalloc-5.3.1 bits=64 build=9108e8f1788612b\n")
	if err != nil || got != "9.1.2" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := parseVersion("sh: not found"); err == nil {
		t.Errorf("got %q of nothing", got)
	}
}

func TestLibrariesAreReadFromLdd(t *testing.T) {
	got := parseLdd(`/usr/bin/valkey-server:
	linux-vdso.so.1 (0x00007fc1779b5000)
	libm.so.6 => /usr/lib/x86_64-linux-gnu/libm.so.6 (0x00007fc1770ea000)
	/lib64/ld-linux-x86-64.so.2 (0x00007fc1779b7000)
/usr/bin/sleep:
	statically linked
`)
	if diff := cmp.Diff([]string{"/usr/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestOldPathsLeadIntoUsr(t *testing.T) {
	for path, want := range map[string]string{
		"/lib64/ld-linux-x86-64.so.2": "/usr/lib64/ld-linux-x86-64.so.2", "/bin/sh": "/usr/bin/sh", "/usr/bin/env": "/usr/bin/env", "/library/x": "/library/x",
	} {
		if got := mergedUsr(path); got != want {
			t.Errorf("%s becomes %s, want %s", path, got, want)
		}
	}
}
