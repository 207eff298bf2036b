// Command cert-manager runs the controllers of cert-manager that issue from
// self-signed and CA issuers, in one namespace. It is what cert-manager's own
// program does, without its webhook, leader election and other issuers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/cert-manager/cert-manager/pkg/controller"
	// Each registers itself.
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	requestsca "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	requestsselfsigned "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

var controllers = []string{
	approver.ControllerName, requestsca.CRControllerName, requestsselfsigned.CRControllerName,
	issuing.ControllerName, keymanager.ControllerName, readiness.ControllerName, requestmanager.ControllerName,
	revisionmanager.ControllerName, trigger.ControllerName, issuers.ControllerName,
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig")
	namespace := flag.String("namespace", "", "the namespace to issue in")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *namespace); err != nil {
		fmt.Fprintf(os.Stderr, "cert-manager: %v\n", err)
		os.Exit(1)
	}
}

// run blocks until the context ends or a controller does.
func run(ctx context.Context, kubeconfig, namespace string) error {
	if kubeconfig == "" || namespace == "" {
		return errors.New("--kubeconfig and --namespace are needed")
	}
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, klog.Background()))
	defer cancel()
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig: kubeconfig, Namespace: namespace, KubernetesAPIQPS: 50, KubernetesAPIBurst: 100,
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: time.Hour, CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	})
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	shared, err := factory.Build()
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	var made []controller.Interface
	for _, name := range controllers {
		c, err := controller.Known()[name](factory)
		if err != nil {
			return fmt.Errorf("make controller %s: %w", name, err)
		}
		made = append(made, c)
	}
	// Controllers have asked for the informers that they need.
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())

	errs := make([]error, len(made))
	var group sync.WaitGroup
	for i, c := range made {
		group.Go(func() {
			defer cancel()
			if err := c.Run(1, ctx); err != nil && ctx.Err() == nil {
				errs[i] = fmt.Errorf("run controller %s: %w", controllers[i], err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
