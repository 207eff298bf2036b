// Package proc starts detached processes and recognises them later.
package proc

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// ID is a process that a reused number can't be mistaken for.
type ID struct {
	PID int `json:"pid"`
	// Start is the start time in clock ticks since boot (proc_pid_stat, field 22).
	Start uint64 `json:"start"`
}

// Identify looks a live process up.
func Identify(pid int) (ID, error) {
	start, _, err := stat(pid)
	if err != nil {
		return ID{}, err
	}
	return ID{PID: pid, Start: start}, nil
}

// Alive reports whether this very process still runs; a zombie doesn't.
func (id ID) Alive() bool {
	if id.PID == 0 {
		return false
	}
	start, status, err := stat(id.PID)
	return err == nil && start == id.Start && status != "Z" && status != "X"
}

func stat(pid int) (start uint64, status string, err error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, "", fmt.Errorf("look process %d up: %w", pid, err)
	}
	return parseStat(string(content))
}

// parseStat reads /proc/PID/stat, whose second field, the command in
// parentheses, may itself hold spaces and parentheses.
func parseStat(content string) (start uint64, status string, err error) {
	end := strings.LastIndexByte(content, ')')
	if end < 0 {
		return 0, "", fmt.Errorf("parse process status %q", content)
	}
	fields := strings.Fields(content[end+1:])
	if len(fields) < 20 {
		return 0, "", fmt.Errorf("parse process status %q", content)
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	if err != nil {
		return 0, "", fmt.Errorf("parse process status: %w", err)
	}
	return start, fields[0], nil
}

// Process is a detached process while its parent still lives.
type Process struct {
	ID
	Name string
	// Exited is closed when the process ends before its parent; Err then says how.
	Exited chan struct{}
	Err    error
}

// Start runs the command in a session of its own with its output in logFile,
// so that it outlives this process.
func Start(name string, cmd *exec.Cmd, logFile string) (*Process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	id, err := Identify(cmd.Process.Pid)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{ID: id, Name: name, Exited: make(chan struct{})}
	go func() {
		if err := cmd.Wait(); err != nil {
			p.Err = fmt.Errorf("%s ended: %w; see %s", name, err, logFile)
		} else {
			p.Err = fmt.Errorf("%s ended; see %s", name, logFile)
		}
		close(p.Exited)
	}()
	return p, nil
}
