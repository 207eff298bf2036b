package tlsprobe

import (
	"context"
	"time"
)

// silence is how long a server that says nothing is listened to. A TLS listener
// resets at once.
const silence = time.Second

// Plaintext is what came back when something was sent without TLS.
type Plaintext struct {
	// DialErr is why there was no connection.
	DialErr error
	// Reply holds the first bytes of the answer, if there was one.
	Reply []byte
}

// tlsAlert begins an alert record: the way in which some TLS listeners say that
// they don't understand.
const tlsAlert = 0x15

// Answered is whether the server spoke plaintext.
func (p Plaintext) Answered() bool { return len(p.Reply) > 0 && p.Reply[0] != tlsAlert }

// speakPlain sends a PING, which holds nothing of anybody, and listens.
func speakPlain(ctx context.Context, dial Dial) Plaintext {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	conn, err := dial(ctx)
	if err != nil {
		return Plaintext{DialErr: err}
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	// That nothing comes back is what is expected, for whatever reason.
	_ = conn.SetDeadline(time.Now().Add(silence))
	_, _ = conn.Write([]byte("PING\r\n"))
	reply := make([]byte, 64)
	n, _ := conn.Read(reply)
	return Plaintext{Reply: reply[:n]}
}
