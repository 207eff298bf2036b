//go:build linux

package proc

import "syscall"

// DieWithParent makes a child end when this process does, however it ends.
func DieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
