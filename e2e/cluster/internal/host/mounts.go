//go:build linux

package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// MountMemory makes a directory whose files are in memory, at most so many bytes of them.
func MountMemory(dir string, size int64) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, fmt.Sprintf("mode=700,size=%d", size)); err != nil {
		return fmt.Errorf("mount memory at %s: %w", dir, err)
	}
	return nil
}

// UnmountBelow unmounts whatever is mounted below dir. Nodes mount in
// namespaces of their own, so there should be little; but what follows is the
// removal of dir, which must not reach through a mount.
func UnmountBelow(dir string) error {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	defer f.Close()
	points, err := pointsBelow(f, dir)
	if err != nil {
		return err
	}
	// The last mounted goes first.
	for i := len(points) - 1; i >= 0; i-- {
		if err := unix.Unmount(points[i], unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmount %s: %w", points[i], err)
		}
	}
	return nil
}

func pointsBelow(mountinfo io.Reader, dir string) ([]string, error) {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var points []string
	lines := bufio.NewScanner(mountinfo)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		if point := unescape.Replace(fields[4]); point == dir || strings.HasPrefix(point, dir+"/") {
			points = append(points, point)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	return points, nil
}
