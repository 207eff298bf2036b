//go:build e2e

package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/e2e/cluster/clusterctl"
)

var certificateKind = schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"}

// StartCertManager runs cert-manager's controllers for this namespace until the test
// ends; its kinds are gone then too. They run on this machine, as a process: the
// local Kubernetes has no image of them.
func (s *Space) StartCertManager() {
	s.t.Helper()
	dir, err := clusterctl.CertManager(s.t.Context())
	if err != nil {
		s.t.Fatalf("build cert-manager: %v", err)
	}
	s.installKinds(filepath.Join(dir, "crds"))

	file := filepath.Join(s.Logs, "cert-manager.log")
	log, err := os.Create(file)
	if err != nil {
		s.t.Fatalf("open the log of cert-manager: %v", err)
	}
	cmd := exec.Command(filepath.Join(dir, "cert-manager"), "--kubeconfig", s.Kubeconfig, "--namespace", s.Name)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of the tests is for their cleanup
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("run cert-manager: %v", errors.Join(err, log.Close()))
	}
	ended := make(chan error, 1)
	go func() { ended <- errors.Join(cmd.Wait(), log.Close()) }()
	s.t.Cleanup(func() {
		select {
		case err := <-ended:
			s.t.Errorf("cert-manager ended by itself: %v; see %s", err, file)
			return
		default:
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			s.t.Errorf("end cert-manager: %v", err)
			return
		}
		if err := <-ended; err != nil {
			s.t.Errorf("cert-manager failed when it was ended: %v; see %s", err, file)
		}
	})
}

// installKinds makes the kinds that are in a namespace, and takes them away when the
// test ends.
func (s *Space) installKinds(dir string) {
	s.t.Helper()
	var files []string
	for _, kind := range []string{"issuers", "certificates", "certificaterequests"} {
		files = append(files, "-f", filepath.Join(dir, "cert-manager.io_"+kind+".yaml"))
	}
	s.t.Cleanup(func() {
		r := s.RunKubectl(context.Background(), "", append([]string{"delete", "--ignore-not-found", "--timeout=2m"}, files...)...)
		if r.Code != 0 {
			s.t.Errorf("remove the kinds of cert-manager: %s", r)
		}
	})
	// They are too large for the annotation of a client-side apply.
	for _, args := range [][]string{{"apply", "--server-side"}, {"wait", "--for=condition=Established", "--timeout=1m"}} {
		if r := s.RunKubectl(s.t.Context(), "", append(args, files...)...); r.Code != 0 {
			s.t.Fatalf("install the kinds of cert-manager: %s", r)
		}
	}
}

// Renew has cert-manager issue a Certificate anew, as `cmctl renew` does, and waits
// until its Secret was rewritten.
func (s *Space) Renew(certificate string) {
	s.t.Helper()
	before := s.certificate(certificate)
	revision, _, err := unstructured.NestedInt64(before.Object, "status", "revision")
	if err != nil {
		s.t.Fatalf("read Certificate %s: %v", certificate, err)
	}
	s.Eventually("Certificate "+certificate+" is asked for anew", time.Minute, func() error {
		c := s.certificate(certificate)
		conditions, _, err := unstructured.NestedSlice(c.Object, "status", "conditions")
		if err != nil {
			return err
		}
		conditions = slices.DeleteFunc(conditions, func(c any) bool {
			condition, ok := c.(map[string]any)
			return ok && condition["type"] == "Issuing"
		})
		conditions = append(conditions, map[string]any{
			"type": "Issuing", "status": "True", "reason": "ManuallyTriggered",
			"message": "Certificate re-issuance manually triggered", "observedGeneration": c.GetGeneration(),
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		})
		if err := unstructured.SetNestedSlice(c.Object, conditions, "status", "conditions"); err != nil {
			return err
		}
		return s.Client.Status().Update(s.t.Context(), c)
	})
	s.Eventually("Certificate "+certificate+" is issued anew", time.Minute, func() error {
		c := s.certificate(certificate)
		now, _, err := unstructured.NestedInt64(c.Object, "status", "revision")
		if err == nil && now <= revision {
			err = fmt.Errorf("its status is %v", c.Object["status"])
		}
		return err
	})
}

func (s *Space) certificate(name string) *unstructured.Unstructured {
	s.t.Helper()
	c := &unstructured.Unstructured{}
	c.SetGroupVersionKind(certificateKind)
	if err := s.Client.Get(s.t.Context(), client.ObjectKey{Namespace: s.Name, Name: name}, c); err != nil {
		s.t.Fatalf("read Certificate %s: %v", name, err)
	}
	return c
}
