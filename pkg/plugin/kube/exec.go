package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"
)

// Command is a program to run in a container.
type Command struct {
	Namespace, Pod, Container string
	Argv                      []string
	Stdin                     io.Reader
	Stdout, Stderr            io.Writer
	// Sizes, if set, makes it a terminal of changing size.
	Sizes remotecommand.TerminalSizeQueue
}

// Runner runs a command in a container. The error of a program that ran and failed
// is an exec.CodeExitError of client-go.
type Runner func(context.Context, Command) error

// Run runs a command in a container through the API server, as kubectl exec does.
func (a *Access) Run(ctx context.Context, c Command) error {
	core, config, err := a.core()
	if err != nil {
		return err
	}
	tty := c.Sizes != nil
	request := core.Post().Resource("pods").Namespace(c.Namespace).Name(c.Pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: c.Container, Command: c.Argv, TTY: tty,
			Stdin: c.Stdin != nil, Stdout: c.Stdout != nil, Stderr: c.Stderr != nil && !tty,
		}, scheme.ParameterCodec)
	// Proxies between here and the API server may know only the older protocol.
	older, err := remotecommand.NewSPDYExecutor(config, "POST", request.URL())
	if err != nil {
		return fmt.Errorf("set up client: %w", err)
	}
	newer, err := remotecommand.NewWebSocketExecutor(config, "GET", request.URL().String())
	if err != nil {
		return fmt.Errorf("set up client: %w", err)
	}
	executor, err := remotecommand.NewFallbackExecutor(newer, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return fmt.Errorf("set up client: %w", err)
	}
	options := remotecommand.StreamOptions{Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, Tty: tty, TerminalSizeQueue: c.Sizes}
	if tty {
		options.Stderr = nil // a terminal has one stream
	}
	err = executor.StreamWithContext(ctx, options)
	var failed utilexec.CodeExitError
	if errors.As(err, &failed) {
		return err
	}
	// The refusal of an upgrade comes as text alone.
	if err != nil && !apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot ") {
		err = apierrors.NewForbidden(schema.GroupResource{Resource: "pods/exec"}, c.Pod, err)
	}
	return Explain(err, Request{Verb: "create", Resource: "pods/exec", Namespace: c.Namespace})
}

// core returns a client for subresources of the core API, with its configuration.
func (a *Access) core() (*rest.RESTClient, *rest.Config, error) {
	config, err := a.config()
	if err != nil {
		return nil, nil, err
	}
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &corev1.SchemeGroupVersion, "/api"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	core, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("set up client: %w", err)
	}
	return core, config, nil
}

// Logs returns the latest lines that a container wrote.
func (a *Access) Logs(ctx context.Context, namespace, pod, container string, lines int64) ([]byte, error) {
	core, _, err := a.core()
	if err != nil {
		return nil, err
	}
	text, err := core.Get().Resource("pods").Namespace(namespace).Name(pod).SubResource("log").
		VersionedParams(&corev1.PodLogOptions{Container: container, TailLines: &lines, Timestamps: true}, scheme.ParameterCodec).Do(ctx).Raw()
	return text, Explain(err, Request{Verb: "get", Resource: "pods/log", Namespace: namespace})
}
