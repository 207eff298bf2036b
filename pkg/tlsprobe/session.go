package tlsprobe

import (
	"context"
	"errors"
	"net"
	"strings"

	valkeygo "github.com/valkey-io/valkey-go"
)

// Credentials log in; without a user nobody is logged in.
type Credentials struct {
	User, Password string
}

// Session is what a server says to commands on a connection that was verified.
type Session struct {
	// Err is why no answer came.
	Err error
	// Refusal is the server's error, if it answered with one: the login or the PING
	// was not allowed.
	Refusal string
	// Replication holds the fields of INFO replication.
	Replication map[string]string
	// ReplicationRefusal is the server's error in place of them.
	ReplicationRefusal string
}

// talk sends PING and INFO over a connection.
func talk(ctx context.Context, conn net.Conn, login Credentials) *Session {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	used := false
	option := options(login)
	option.ForceSingleClient = true
	option.InitAddress = []string{"node:6379"} // a name for messages; the connection is there
	option.DialCtxFn = dialer(func(context.Context, string) (net.Conn, error) {
		if used {
			return nil, errors.New("the server closed the connection")
		}
		used = true
		return conn, nil
	})
	client, err := valkeygo.NewClient(option)
	if client != nil {
		defer client.Close()
		defer conn.Close() // or the library waits for a last PING
	}
	s := &Session{}
	if err == nil {
		err = client.Do(ctx, client.B().Ping().Build()).Error()
	}
	if s.Refusal, s.Err = answer(err); s.Err != nil || s.Refusal != "" {
		return s
	}
	text, err := client.Do(ctx, client.B().Info().Section("replication").Build()).ToString()
	if s.ReplicationRefusal, s.Err = answer(err); err == nil {
		s.Replication = fields(text)
	}
	return s
}

// answer tells a server's error from no answer.
func answer(err error) (refusal string, lost error) {
	var reply *valkeygo.ValkeyError
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &reply):
		return reply.Error(), nil
	}
	return "", err
}

// fields reads the lines of INFO.
func fields(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			all[key] = value
		}
	}
	return all
}

// options send nothing but what is asked for, over connections that are closed
// soon.
func options(login Credentials) valkeygo.ClientOption {
	return valkeygo.ClientOption{
		Username: login.User, Password: login.Password,
		// A negative interval turns off the library's PING of every second.
		Dialer:              net.Dialer{Timeout: stepTimeout, KeepAlive: -1},
		ConnWriteTimeout:    stepTimeout,
		PipelineMultiplex:   -1,
		AlwaysRESP2:         true,
		DisableCache:        true,
		DisableRetry:        true,
		ClientSetInfo:       valkeygo.DisableClientSetInfo,
		ReadBufferEachConn:  16 << 10,
		WriteBufferEachConn: 4 << 10,
		RingScaleEachConn:   5,
	}
}
