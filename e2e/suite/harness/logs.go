//go:build e2e

package harness

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// managerLogs copies the log of every manager of the run into a file of its own,
// as a killed one's is gone with its pod.
type managerLogs struct {
	env    *Env
	cancel context.CancelFunc
	group  sync.WaitGroup
}

func followManagerLogs(e *Env) *managerLogs {
	ctx, cancel := context.WithCancel(context.Background())
	l := &managerLogs{env: e, cancel: cancel}
	l.group.Go(func() { l.watch(ctx) })
	return l
}

func (l *managerLogs) stop() {
	l.cancel()
	l.group.Wait()
}

// watch looks for new pods; a second is soon enough to miss no line.
func (l *managerLogs) watch(ctx context.Context) {
	seen := map[string]bool{}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		pods, err := l.env.ManagerPods(ctx)
		if err == nil {
			for _, pod := range pods {
				if !seen[pod.Name] && pod.Status.Phase == corev1.PodRunning {
					seen[pod.Name] = true
					l.group.Go(func() { l.copy(ctx, pod.Name) })
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// copy is a service to readers: a log that can't be copied fails nothing.
func (l *managerLogs) copy(ctx context.Context, pod string) {
	stream, err := l.env.Clientset.CoreV1().Pods(ManagerNamespace).GetLogs(pod, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
	if err != nil {
		return
	}
	defer func() { _ = stream.Close() }()
	file, err := os.Create(filepath.Join(l.env.Logs, fmt.Sprintf("manager-%s.log", pod)))
	if err != nil {
		return
	}
	_, _ = io.Copy(file, stream)
	_ = file.Close()
}
