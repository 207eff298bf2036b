package clusterctl

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// PodProcesses lists a pod's processes by its metadata.uid, as this machine
// numbers them, in ascending order: the sandbox's first, then those of its
// containers. /proc/PID/net of any of them is the pod's network, so that
// /proc/PID/net/tcp lists its connections; /proc/PID/root is its file system.
func PodProcesses(uid string) ([]int, error) {
	if uid == "" {
		return nil, fmt.Errorf("list a pod's processes: no uid given")
	}
	files, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // it ended in the meantime
		}
		if !inPod(string(content), uid) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return nil, fmt.Errorf("list processes: %w", err)
		}
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return pids, nil
}

// inPod reads /proc/PID/cgroup; the kubelet's cgroupfs driver calls a pod's
// group "pod" and its uid.
func inPod(procCgroup, uid string) bool {
	return slices.ContainsFunc(strings.Split(procCgroup, "\n"), func(line string) bool {
		return strings.Contains(line, "/kubepods/") && strings.Contains(line+"/", "/pod"+uid+"/")
	})
}
