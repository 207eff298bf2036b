package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// Forwarder opens connections to ports of pods through the API server, as kubectl
// port-forward does, but without a local port that others could use. One tunnel a
// pod carries all its connections.
type Forwarder struct {
	config    *rest.Config
	client    rest.Interface
	namespace string

	mu      sync.Mutex
	tunnels map[string]*tunnel
}

// tunnel is the connection to one pod, made once.
type tunnel struct {
	once   sync.Once
	conn   httpstream.Connection
	err    error
	mu     sync.Mutex
	nextID int
}

// Forwarder returns a Forwarder to the pods of a namespace.
func (a *Access) Forwarder(namespace string) (*Forwarder, error) {
	config, err := a.config()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("set up client: %w", err)
	}
	return &Forwarder{config: config, client: client, namespace: namespace, tunnels: map[string]*tunnel{}}, nil
}

// Dial connects to a port of a pod. An error of the pod's side, that nothing
// listens for example, comes with the first read.
func (f *Forwarder) Dial(ctx context.Context, pod string, port int) (net.Conn, error) {
	f.mu.Lock()
	t := f.tunnels[pod]
	if t == nil {
		t = &tunnel{}
		f.tunnels[pod] = t
	}
	f.mu.Unlock()
	type opened struct {
		conn net.Conn
		err  error
	}
	// The library takes no context.
	done := make(chan opened, 1)
	go func() {
		t.once.Do(func() { t.conn, t.err = f.connect(pod) })
		if t.err != nil {
			done <- opened{err: t.err}
			return
		}
		conn, err := t.open(port)
		done <- opened{conn, err}
	}()
	select {
	case o := <-done:
		return o.conn, o.err
	case <-ctx.Done():
		go func() {
			if o := <-done; o.conn != nil {
				o.conn.Close()
			}
		}()
		return nil, fmt.Errorf("forward a port of pod %s: the API server did not answer in time", pod)
	}
}

// Close ends all tunnels.
func (f *Forwarder) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for pod, t := range f.tunnels {
		delete(f.tunnels, pod)
		go func() {
			t.once.Do(func() { t.err = net.ErrClosed })
			if t.conn != nil {
				t.conn.Close()
			}
		}()
	}
}

// connect opens the tunnel to a pod: over a WebSocket, which proxies let through,
// or by SPDY where the API server or a proxy doesn't have it, as kubectl does.
func (f *Forwarder) connect(pod string) (httpstream.Connection, error) {
	url := f.client.Post().Resource("pods").Namespace(f.namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(f.config)
	if err != nil {
		return nil, fmt.Errorf("set up client: %w", err)
	}
	overSPDY := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	overWebSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, f.config)
	if err != nil {
		return nil, fmt.Errorf("set up client: %w", err)
	}
	conn, _, err := portforward.NewFallbackDialerForStreaming(overWebSocket, overSPDY, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}).Dial(portforward.PortForwardProtocolV1Name)
	if err == nil {
		return conn, nil
	}
	if isForbidden(err) {
		return nil, &explained{sentence: "ports of pods can't be forwarded: needs " + f.permission(), err: err}
	}
	return nil, Explain(fmt.Errorf("forward a port of pod %s: %w", pod, err), Request{Verb: "create", Resource: "pods/portforward", Namespace: f.namespace})
}

func (f *Forwarder) permission() string {
	return Request{Verb: "create", Resource: "pods/portforward", Namespace: f.namespace}.permission()
}

// isForbidden also knows a refusal that came as text: not every way to upgrade a
// connection keeps the API server's status.
func isForbidden(err error) bool {
	return apierrors.IsForbidden(err) || strings.Contains(err.Error(), "is forbidden: ")
}

// open makes one connection through the tunnel.
func (t *tunnel) open(port int) (net.Conn, error) {
	t.mu.Lock()
	id := t.nextID
	t.nextID++
	t.mu.Unlock()
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(id))
	failures, err := t.conn.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("forward port %d: %w", port, err)
	}
	// Nothing is ever written to it.
	failures.Close()
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := t.conn.CreateStream(headers)
	if err != nil {
		t.conn.RemoveStreams(failures)
		return nil, fmt.Errorf("forward port %d: %w", port, err)
	}
	// A pipe has the deadlines that a stream lacks.
	here, there := net.Pipe()
	c := &forwarded{Conn: here, failed: make(chan struct{})}
	go func() {
		defer close(c.failed)
		if text, err := io.ReadAll(failures); err == nil && len(text) > 0 {
			c.failure = errors.New(strings.TrimSpace(string(text)))
		}
	}()
	go func() {
		_, _ = io.Copy(there, data)
		there.Close()
		t.conn.RemoveStreams(data, failures)
	}()
	go func() {
		_, _ = io.Copy(data, there)
		// Also the other direction: the peer of this connection is gone.
		_ = data.Reset()
	}()
	return c, nil
}

// reasonWithin is how long the end of a connection waits for its reason.
const reasonWithin = 200 * time.Millisecond

// forwarded is a connection whose end is explained by what the pod's side says.
type forwarded struct {
	net.Conn
	failed  chan struct{}
	failure error
}

func (c *forwarded) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 || !errors.Is(err, io.EOF) {
		return n, err
	}
	// The reason is on its way on a stream of its own, if there is one.
	timer := time.NewTimer(reasonWithin)
	defer timer.Stop()
	select {
	case <-c.failed:
		if c.failure != nil {
			return 0, c.failure
		}
	case <-timer.C:
	}
	return n, err
}
