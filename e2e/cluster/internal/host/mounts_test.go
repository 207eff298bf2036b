//go:build linux

package host

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOnlyMountsBelowTheDirectoryAreFound(t *testing.T) {
	const mountinfo = `27 1 254:0 / / rw - ext4 /dev/vda rw
28 27 0:1 / /var/lib/thing/a rw - tmpfs t rw
29 28 0:2 / /var/lib/thing/a/with\040space rw - tmpfs t rw
30 27 0:3 / /var/lib/thing-of-others rw - tmpfs t rw
`
	got, err := pointsBelow(strings.NewReader(mountinfo), "/var/lib/thing")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/var/lib/thing/a", "/var/lib/thing/a/with space"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTooLittleSpaceIsRefused(t *testing.T) {
	dir := t.TempDir() + "/not/there/yet"
	if err := CheckSpace(dir, 1); err != nil {
		t.Error(err)
	}
	if err := CheckSpace(dir, 1<<62); err == nil || !strings.Contains(err.Error(), "KUBECTL_VALKEY_CACHE") {
		t.Errorf("got %v", err)
	}
}
