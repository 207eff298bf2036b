package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/slots"
)

type options struct {
	address, ca, username, prefix string
	clients, preload, size        int
	every, patience               time.Duration
	ranges                        []slots.Set
}

// opTimeout is how long an operation may take before it counts as failed. It is
// longer than the election of a new primary, so that what a client outlives by its
// own retries is no failure.
const opTimeout = 30 * time.Second

type writer struct {
	options
	clients []valkey.Client
	log     *log
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// connect makes the clients, with the settings of an application that has to
// notice a dead node: it asks for the topology every half second and gives up a
// connection that is silent for its patience.
func connect(ctx context.Context, o options) (*writer, error) {
	if o.address == "" {
		return nil, errors.New("--address is missing: host:port of any node")
	}
	w := &writer{options: o, log: newLog(o.ranges)}
	config, err := tlsConfig(o.ca)
	if err != nil {
		return nil, err
	}
	for range o.clients {
		client, err := dial(ctx, o, config)
		if err != nil {
			w.close()
			return nil, err
		}
		w.clients = append(w.clients, client)
	}
	return w, nil
}

// reconnect leaves the clients for one that starts at another address.
func (w *writer) reconnect(ctx context.Context, address string) error {
	w.close()
	w.clients, w.address = nil, address
	config, err := tlsConfig(w.ca)
	if err != nil {
		return err
	}
	client, err := dial(ctx, w.options, config)
	if err != nil {
		return err
	}
	w.clients = []valkey.Client{client}
	return nil
}

// dial waits for a cluster that is about to come up.
func dial(ctx context.Context, o options, config *tls.Config) (valkey.Client, error) {
	const patience = time.Minute
	began := time.Now()
	for {
		client, err := valkey.NewClient(valkey.ClientOption{
			InitAddress:      []string{o.address},
			TLSConfig:        config,
			Username:         o.username,
			Password:         os.Getenv("PASSWORD"),
			DisableCache:     true,
			Dialer:           net.Dialer{Timeout: o.patience, KeepAlive: o.patience / 2},
			ConnWriteTimeout: o.patience,
			ClusterOption:    valkey.ClusterOption{ShardsRefreshInterval: 500 * time.Millisecond},
		})
		if err == nil {
			return client, nil
		}
		var stranger x509.HostnameError
		if time.Since(began) > patience || ctx.Err() != nil || errors.As(err, &stranger) {
			return nil, fmt.Errorf("connect to %s: %w", o.address, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func tlsConfig(file string) (*tls.Config, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read --ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--ca: %s has no certificate", file)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

func (w *writer) close() {
	for _, c := range w.clients {
		c.Close()
	}
}

// value is what a key must hold: it says which key it belongs to.
func (w *writer) value(key string, size int) string {
	return key + strings.Repeat(".", max(size-len(key), 0))
}

// preload writes the keys that are there before anything happens.
func (w *writer) preload(ctx context.Context) error {
	const batch = 500
	var group sync.WaitGroup
	failed := make([]error, len(w.clients))
	for c, client := range w.clients {
		group.Go(func() {
			for from := c * batch; from < w.options.preload && failed[c] == nil; from += batch * len(w.clients) {
				keys := make([]string, 0, batch)
				commands := make(valkey.Commands, 0, batch)
				for i := from; i < min(from+batch, w.options.preload); i++ {
					key := fmt.Sprintf("%s:pre:%d", w.prefix, i)
					keys = append(keys, key)
					commands = append(commands, client.B().Set().Key(key).Value(w.value(key, w.size)).Build())
				}
				for _, result := range client.DoMulti(ctx, commands...) {
					if err := result.Error(); err != nil {
						failed[c] = fmt.Errorf("preload: %w", err)
					}
				}
				w.log.preloaded(keys)
			}
		})
	}
	group.Wait()
	return errors.Join(failed...)
}

// start begins to write: each client on its own beat, never waiting for the answer
// to one write before the next.
func (w *writer) start(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(ctx)
	w.log.begin()
	for c, client := range w.clients {
		w.running.Go(func() {
			beat := time.NewTicker(w.every)
			defer beat.Stop()
			for i := 0; ; i++ {
				select {
				case <-ctx.Done():
					return
				case <-beat.C:
				}
				key := fmt.Sprintf("%s:%d:%d", w.prefix, c, i)
				w.running.Go(func() { w.write(context.WithoutCancel(ctx), client, key) })
			}
		})
	}
}

func (w *writer) write(ctx context.Context, client valkey.Client, key string) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	sent := time.Now()
	command := client.B().Set().Key(key).Value(w.value(key, 0)).Build().Pin()
	slot := int(command.Slot())
	err := client.Do(ctx, command).Error()
	// A server that joins is listed by the others about a tenth of a second before it
	// knows all slots itself, and a client may have asked just that one. valkey-go then
	// says that nobody has the slot, without a try; the gap still counts.
	for errors.Is(err, valkey.ErrNoSlot) && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
		err = client.Do(ctx, command).Error()
	}
	w.log.wrote(key, slot, sent, time.Now(), err)
}

// stop ends the writing and waits for what is under way.
func (w *writer) stop() {
	w.cancel()
	w.running.Wait()
}

// readBack returns the acknowledged keys that are gone or hold something else.
func (w *writer) readBack(ctx context.Context, keys []string) ([]string, error) {
	const batch, patience = 500, time.Minute
	var lost []string
	client := w.clients[0]
	for from := 0; from < len(keys); from += batch {
		open := keys[from:min(from+batch, len(keys))]
		for began := time.Now(); len(open) > 0; {
			commands := make(valkey.Commands, len(open))
			for i, key := range open {
				commands[i] = client.B().Get().Key(key).Build()
			}
			var again []string
			var failed error
			for i, result := range client.DoMulti(ctx, commands...) {
				got, err := result.ToString()
				switch {
				case valkey.IsValkeyNil(err), err == nil && !strings.HasPrefix(strings.TrimRight(got, ".")+"|", open[i]+"|"):
					lost = append(lost, open[i])
				case err != nil:
					again, failed = append(again, open[i]), err
				}
			}
			if open = again; len(open) > 0 && time.Since(began) > patience {
				return nil, fmt.Errorf("read %d keys back: %w", len(open), failed)
			}
		}
	}
	return lost, nil
}
