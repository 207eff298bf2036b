//go:build linux

package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mount is one mount of the node's file system, below its new root.
type mount struct {
	source, target, fstype string
	flags                  uintptr
	data                   string
	file                   bool // the target is a file
}

// mounts lists the node's file system in the order of mounting. Everything
// happens in the node's own mount namespace and goes with it.
func (s Spec) mounts() []mount {
	dir := s.Node.Dir()
	list := []mount{
		{source: "overlay", target: "/", fstype: "overlay", data: fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s",
			s.Rootfs, filepath.Join(dir, "upper"), filepath.Join(dir, "work"))},
		{source: "proc", target: "/proc", fstype: "proc"},
		{source: "/dev", target: "/dev", flags: unix.MS_BIND | unix.MS_REC},
		{source: "sysfs", target: "/sys", fstype: "sysfs"},
		{source: "tmpfs", target: "/run", fstype: "tmpfs", data: "mode=755"},
		{source: filepath.Join(dir, "containerd"), target: "/var/lib/containerd", flags: unix.MS_BIND},
		{source: filepath.Join(dir, "kubelet"), target: "/var/lib/kubelet", flags: unix.MS_BIND},
		{source: filepath.Join(dir, "conf"), target: confDir, flags: unix.MS_BIND},
		{source: s.LogDir, target: nodeLogs, flags: unix.MS_BIND},
	}
	for i, b := range s.Binaries {
		list = append(list, mount{source: b, target: filepath.Join(partsDir, "bin"+strconv.Itoa(i)), flags: unix.MS_BIND})
	}
	for i, archive := range s.Images {
		list = append(list, mount{source: archive, target: imagePath(i), flags: unix.MS_BIND, file: true})
	}
	if len(s.Cgroups) > 1 || len(s.Cgroups) == 1 && s.Cgroups[0] != "/sys/fs/cgroup" {
		list = append(list, mount{source: "tmpfs", target: "/sys/fs/cgroup", fstype: "tmpfs", data: "mode=755"})
	}
	for _, c := range s.Cgroups {
		list = append(list, mount{source: c, target: filepath.Join("/sys/fs/cgroup", cgroupName(c)), flags: unix.MS_BIND})
	}
	return list
}

// cgroupName is the mount's place below /sys/fs/cgroup: the name of its v1
// controllers, nothing for v2.
func cgroupName(path string) string {
	if path == "/sys/fs/cgroup" {
		return ""
	}
	return filepath.Base(path)
}

func imagePath(i int) string { return filepath.Join(partsDir, "images", strconv.Itoa(i)+".tar") }

// changeRoot builds the node's file system and makes it "/". A plain chroot is
// not enough: runc needs "/" to be a mount point.
func (s Spec) changeRoot() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate the node's mounts from the host's: %w", err)
	}
	root := filepath.Join(s.Node.Dir(), "root")
	for _, m := range s.mounts() {
		if err := m.do(root); err != nil {
			return err
		}
	}
	if err := linkControllers(filepath.Join(root, "sys/fs/cgroup"), s.Cgroups); err != nil {
		return err
	}
	old := filepath.Join(root, "mnt")
	if err := unix.PivotRoot(root, old); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount("/mnt", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the host's root: %w", err)
	}
	// Volumes that the kubelet mounts have to reach the containers.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share the node's mounts with its containers: %w", err)
	}
	return nil
}

func (m mount) do(root string) error {
	target := filepath.Join(root, m.target)
	dir := target
	if m.file {
		dir = filepath.Dir(target)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the mount point %s: %w", m.target, err)
	}
	if m.file {
		f, err := os.OpenFile(target, os.O_CREATE, 0o644)
		if err != nil {
			return fmt.Errorf("make the mount point %s: %w", m.target, err)
		}
		if err := f.Close(); err != nil {
			return fmt.Errorf("make the mount point %s: %w", m.target, err)
		}
	}
	if err := unix.Mount(m.source, target, m.fstype, m.flags, m.data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", m.source, m.target, err)
	}
	return nil
}

// linkControllers makes "cpu" lead to "cpu,cpuacct" where the host mounts
// several v1 controllers together.
func linkControllers(dir string, mounts []string) error {
	for _, path := range mounts {
		name := cgroupName(path)
		for controller := range strings.SplitSeq(name, ",") {
			if controller == name {
				break
			}
			if err := os.Symlink(name, filepath.Join(dir, controller)); err != nil {
				return fmt.Errorf("link the controller %s: %w", controller, err)
			}
		}
	}
	return nil
}
