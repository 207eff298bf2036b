package valkey

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fakeServer speaks as much of the protocol as a test needs, and writes down what
// it is sent.
type fakeServer struct {
	listener net.Listener
	// answer is the raw reply to a command; "" is none, ever.
	answer func(command string) string

	mu       sync.Mutex
	commands []string
	conns    []net.Conn
}

const helloReply = "%3\r\n$6\r\nserver\r\n$6\r\nvalkey\r\n$7\r\nversion\r\n$5\r\n9.1.2\r\n$5\r\nproto\r\n:3\r\n"

// serve starts a server at a free loopback port that answers HELLO itself.
func serve(t *testing.T, config *tls.Config, answer func(command string) string) *fakeServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	s := &fakeServer{listener: listener, answer: answer}
	t.Cleanup(func() {
		_ = listener.Close()
		s.disconnectAll()
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns = append(s.conns, conn)
			s.mu.Unlock()
			go s.talk(conn)
		}
	}()
	return s
}

func (s *fakeServer) talk(conn net.Conn) {
	in := bufio.NewReader(conn)
	for {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.commands = append(s.commands, command)
		s.mu.Unlock()
		reply := s.answer(command)
		if reply == "" && strings.HasPrefix(command, "HELLO") {
			reply = helloReply
		}
		if _, err := io.WriteString(conn, reply); err != nil {
			return
		}
	}
}

func readCommand(in *bufio.Reader) (string, error) {
	count, err := readNumber(in, '*')
	if err != nil {
		return "", err
	}
	words := make([]string, count)
	for i := range words {
		size, err := readNumber(in, '$')
		if err != nil {
			return "", err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return "", err
		}
		words[i] = string(word[:size])
	}
	return strings.Join(words, " "), nil
}

func readNumber(in *bufio.Reader, kind byte) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("got %q, want %c", line, kind)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

func (s *fakeServer) address() string { return s.listener.Addr().String() }

func (s *fakeServer) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.commands...)
}

func (s *fakeServer) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

func (s *fakeServer) disconnectAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		_ = conn.Close()
	}
}

// answers replies OK to everything that isn't listed by its first words.
func answers(by map[string]string) func(string) string {
	return func(command string) string {
		if strings.HasPrefix(command, "HELLO") {
			return by["HELLO"]
		}
		for prefix, reply := range by {
			if strings.HasPrefix(command, prefix) {
				return reply
			}
		}
		return "+OK\r\n"
	}
}

func silent(string) string { return "" }

func dial(t *testing.T, dialer Dialer, target Target) Node {
	t.Helper()
	if target.Node == "" {
		target.Node = "c-0a1b2"
	}
	node, err := dialer.Dial(context.Background(), target, Credentials{Username: "_momento_operator", Password: "hunter2"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(node.Close)
	return node
}
