package cgroups

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Create makes the group, such as "kubectl-valkey/node1/system", and its
// parents in every hierarchy, ready to be joined.
func (h Host) Create(group string) error {
	for _, m := range h.Mounts {
		at := m.Path
		for part := range strings.SplitSeq(group, "/") {
			parent := at
			at = filepath.Join(at, part)
			if h.V2 {
				if err := delegate(parent); err != nil {
					return err
				}
			}
			if err := os.MkdirAll(at, 0o755); err != nil {
				return fmt.Errorf("create cgroup: %w", err)
			}
			if slices.Contains(m.Controllers, "cpuset") {
				if err := inheritCPUSet(parent, at); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// inheritCPUSet fills the two files without which no process can join a v1
// cpuset group.
func inheritCPUSet(parent, child string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil {
			return fmt.Errorf("read the parent's cpuset: %w", err)
		}
		if err := os.WriteFile(filepath.Join(child, file), value, 0o644); err != nil {
			return fmt.Errorf("fill the cpuset: %w", err)
		}
	}
	return nil
}

// delegate turns on, for the children of a v2 group, all controllers it has.
func delegate(dir string) error {
	have, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read controllers: %w", err)
	}
	for _, c := range strings.Fields(string(have)) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644); err != nil {
			return fmt.Errorf("enable the controller %s below %s: %w", c, dir, err)
		}
	}
	return nil
}

// Weigh sets the group's part of the processor beside its siblings, in the shares of
// cgroup v1: a new group has 1024.
func (h Host) Weigh(group string, shares int) error {
	for _, m := range h.Mounts {
		file, value := "cpu.shares", shares
		switch {
		case h.V2:
			// As the kubelet and the container runtime convert them.
			file, value = "cpu.weight", 1+(shares-2)*9999/262142
		case !slices.Contains(m.Controllers, "cpu"):
			continue
		}
		if err := os.WriteFile(filepath.Join(m.dir(group), file), []byte(strconv.Itoa(value)), 0o644); err != nil {
			return fmt.Errorf("weigh cgroup %s: %w", group, err)
		}
	}
	return nil
}

// Join moves a process into the group; its later children are born there.
func (h Host) Join(group string, pid int) error {
	for _, m := range h.Mounts {
		if err := joinDir(m.dir(group), pid); err != nil {
			return err
		}
	}
	return nil
}

func joinDir(dir string, pid int) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
		return fmt.Errorf("join cgroup %s: %w", dir, err)
	}
	return nil
}

// Enter creates the group and moves this process into it. The returned
// function moves it back to where it was.
func (h Host) Enter(group string) (leave func() error, err error) {
	was, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, fmt.Errorf("read own cgroup: %w", err)
	}
	if err := h.Create(group); err != nil {
		return nil, err
	}
	if err := h.Join(group, os.Getpid()); err != nil {
		return nil, err
	}
	return func() error {
		var errs []error
		for _, m := range h.Mounts {
			errs = append(errs, joinDir(m.dir(membership(string(was), m)), os.Getpid()))
		}
		return errors.Join(errs...)
	}, nil
}

// membership reads from /proc/PID/cgroup the group in one hierarchy, "/" when
// it isn't listed.
func membership(procCgroup string, m Mount) string {
	for line := range strings.Lines(procCgroup) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		names := strings.Split(parts[1], ",")
		if len(m.Controllers) == 0 && parts[1] == "" || len(m.Controllers) > 0 && slices.Contains(names, m.Controllers[0]) {
			return parts[2]
		}
	}
	return "/"
}

// Processes lists the members of the group and of all groups below it.
func (h Host) Processes(group string) ([]int, error) {
	seen := map[int]bool{}
	for _, m := range h.Mounts {
		err := filepath.WalkDir(m.dir(group), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // the group, or one below it, is gone
			}
			if err != nil || !d.IsDir() {
				return err
			}
			content, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
				return nil // removed between the listing and the read
			}
			if err != nil {
				return err
			}
			for field := range strings.FieldsSeq(string(content)) {
				if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
					seen[pid] = true
				}
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("list the processes of cgroup %s: %w", group, err)
		}
	}
	pids := make([]int, 0, len(seen))
	for pid := range seen {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids, nil
}

// Kill kills every member of the group but this process, until none is left.
// It repeats because members may fork between the listing and the signal.
func (h Host) Kill(ctx context.Context, group string) error {
	for {
		pids, err := h.Processes(group)
		if err != nil {
			return err
		}
		pids = slices.DeleteFunc(pids, func(pid int) bool { return pid == os.Getpid() })
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("kill process %d of cgroup %s: %w", pid, group, err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("processes %v of cgroup %s don't die: %w", pids, group, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Remove removes the empty group and all below it, in every hierarchy. The
// kernel lets go of a dead member a moment after its death, hence the retries.
func (h Host) Remove(ctx context.Context, group string) error {
	for {
		var errs []error
		for _, m := range h.Mounts {
			errs = append(errs, removeTree(m.dir(group)))
		}
		err := errors.Join(errs...)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("remove cgroup %s: %w", group, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, syscall.ENOENT) {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}

// Exists reports whether any hierarchy has the group.
func (h Host) Exists(group string) bool {
	return slices.ContainsFunc(h.Mounts, func(m Mount) bool {
		_, err := os.Stat(m.dir(group))
		return err == nil
	})
}
