// Package cgroups makes, joins, empties and removes the program's own control
// groups. Membership is also how the program knows its processes: everything
// it starts is born inside one of its groups, so nothing can be missed and
// nothing foreign can be hit when they are emptied.
package cgroups

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// wanted are the controllers that the kubelet and runc need on cgroup v1.
var wanted = []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids"}

// Mount is one cgroup file system: a v1 hierarchy with its controllers, or the
// one of v2.
type Mount struct {
	Path        string
	Controllers []string
}

// Host is the machine's cgroup set-up.
type Host struct {
	V2     bool
	Mounts []Mount
}

// Detect reads the machine's set-up.
func Detect() (Host, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return Host{}, fmt.Errorf("detect cgroups: %w", err)
	}
	defer f.Close()
	return parse(f)
}

// parse reads /proc/self/mountinfo. A v1 controller counts for more than a v2
// mount: in the hybrid set-up the v2 tree has no controllers.
func parse(mountinfo io.Reader) (Host, error) {
	var host Host
	var unified string
	lines := bufio.NewScanner(mountinfo)
	for lines.Scan() {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		path := left[4]
		switch right[0] {
		case "cgroup2":
			if unified == "" {
				unified = path
			}
		case "cgroup":
			if m := v1Mount(path, right[2]); len(m.Controllers) > 0 && !host.has(m.Controllers[0]) {
				host.Mounts = append(host.Mounts, m)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return Host{}, fmt.Errorf("read mountinfo: %w", err)
	}
	if len(host.Mounts) == 0 {
		if unified == "" {
			return Host{}, errors.New("no cgroup file system is mounted; mount cgroup2 on /sys/fs/cgroup and try again")
		}
		return Host{V2: true, Mounts: []Mount{{Path: unified}}}, nil
	}
	return host, host.complete()
}

func v1Mount(path, options string) Mount {
	m := Mount{Path: path}
	for option := range strings.SplitSeq(options, ",") {
		if slices.Contains(wanted, option) {
			m.Controllers = append(m.Controllers, option)
		}
	}
	return m
}

func (h Host) has(controller string) bool {
	return slices.ContainsFunc(h.Mounts, func(m Mount) bool { return slices.Contains(m.Controllers, controller) })
}

func (h Host) complete() error {
	var missing []string
	for _, c := range wanted {
		if !h.has(c) {
			missing = append(missing, c)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("cgroup v1 without the controllers %s; mount them under /sys/fs/cgroup and try again", strings.Join(missing, ", "))
	}
	return nil
}

// String names the set-up for log lines.
func (h Host) String() string {
	if h.V2 {
		return "cgroup v2 (detected, but this program is only tested on cgroup v1)"
	}
	return "cgroup v1"
}

func (m Mount) dir(group string) string { return filepath.Join(m.Path, group) }
