package valkey

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	valkeygo "github.com/valkey-io/valkey-go"
)

// request is a verb with its arguments.
type request struct {
	verb verb
	args []string
}

func (v verb) with(args ...string) request { return request{verb: v, args: args} }

// IsReply reports whether an error is the server's answer: the server is alive,
// and refuses.
func IsReply(err error) bool {
	var reply *valkeygo.ValkeyError
	return errors.As(err, &reply)
}

// read sends commands that change nothing. A kept connection may have died
// unnoticed, so they are sent once more on a new one.
func (c *connection) read(ctx context.Context, requests ...request) ([]valkeygo.ValkeyMessage, error) {
	messages, err := c.pipeline(ctx, requests...)
	if err != nil && connectionLost(err) && ctx.Err() == nil {
		return c.pipeline(ctx, requests...)
	}
	return messages, err
}

func connectionLost(err error) bool {
	for _, lost := range []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE, net.ErrClosed} {
		if errors.Is(err, lost) {
			return true
		}
	}
	return false
}

// pipeline sends commands in one go and returns their answers, or the first
// error among them.
func (c *connection) pipeline(ctx context.Context, requests ...request) ([]valkeygo.ValkeyMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	commands := make([]valkeygo.Completed, 0, len(requests))
	for _, r := range requests {
		commands = append(commands, c.client.B().Arbitrary(r.verb.words...).Args(r.args...).Build())
	}
	results := c.client.DoMulti(ctx, commands...)
	messages := make([]valkeygo.ValkeyMessage, len(results))
	var first error
	lost := false
	for i, result := range results {
		message, err := result.ToMessage()
		if err != nil {
			lost = lost || !IsReply(err)
			err = fmt.Errorf("node %s: %s: %w", c.target.Node, requests[i].verb, err)
			if first == nil {
				first = err
			}
		}
		messages[i] = message
		if c.trace != nil {
			c.trace(Sent{Node: c.target.Node, Command: requests[i].verb.name, Err: err})
		}
	}
	c.lost.Store(lost)
	if lost {
		// Whatever is still to come on this connection comes too late.
		c.disconnect()
	}
	return messages, first
}

// isUnknownNode reports the answer to a command about a node that the server
// doesn't know.
func isUnknownNode(err error) bool {
	var reply *valkeygo.ValkeyError
	return errors.As(err, &reply) && strings.Contains(reply.Error(), "Unknown node")
}
