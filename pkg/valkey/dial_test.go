package valkey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestALoginSendsHelloAndNothingElse(t *testing.T) {
	server := serve(t, nil, answers(nil))
	node := dial(t, NewDialer(), Target{Address: server.address()})
	if err := node.Replicate(context.Background(), "aaaa"); err != nil {
		t.Fatal(err)
	}
	node.Close()
	want := []string{"HELLO 3 AUTH _momento_operator hunter2", "CLUSTER REPLICATE aaaa"}
	if diff := cmp.Diff(want, server.sent()); diff != "" {
		t.Error(diff)
	}
	if n := server.connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestARedirectIsAnErrorAndIsNotFollowed(t *testing.T) {
	elsewhere := serve(t, nil, answers(nil))
	for _, reply := range []string{
		"-MOVED 42 " + elsewhere.address() + "\r\n",
		"-ASK 42 " + elsewhere.address() + "\r\n",
		"-REDIRECT " + elsewhere.address() + "\r\n",
	} {
		server := serve(t, nil, answers(map[string]string{"PING": reply}))
		node := dial(t, NewDialer(), Target{Address: server.address()})
		err := node.Ping(context.Background())
		if err == nil || !IsReply(err) {
			t.Errorf("%q: %v", reply, err)
		}
		if diff := cmp.Diff([]string{"HELLO 3 AUTH _momento_operator hunter2", "PING"}, server.sent()); diff != "" {
			t.Errorf("%q: %s", reply, diff)
		}
	}
	if n := elsewhere.connections(); n != 0 {
		t.Errorf("a redirect was followed: %d connections", n)
	}
}

func TestAPodWithoutAnAddressIsNotDialled(t *testing.T) {
	for _, address := range []string{"", ":6379", "10.0.0.1", "[]:6379"} {
		_, err := NewDialer().Dial(context.Background(), Target{Node: "c-0a1b2", Address: address}, Credentials{})
		if err == nil || !strings.Contains(err.Error(), "c-0a1b2") || !strings.Contains(err.Error(), "no address") {
			t.Errorf("B-06: %q: %v", address, err)
		}
	}
}

func TestAServerThatAcceptsAndNeverAnswersHoldsNobodyUp(t *testing.T) {
	for name, answer := range map[string]func(string) string{
		"silent from the start":     silentHello,
		"silent after it logged in": silent,
	} {
		t.Run(name, func(t *testing.T) {
			server := serve(t, nil, answer)
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			start := time.Now()
			node, err := NewDialer().Dial(ctx, Target{Node: "c-0a1b2", Address: server.address()}, Credentials{Username: "u", Password: "p"})
			if err == nil {
				defer node.Close()
				_, err = node.Observe(ctx)
			}
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "c-0a1b2") {
				t.Errorf("F-08: %v", err)
			}
			if IsReply(err) {
				t.Error("silence passes for a reply")
			}
			if took := time.Since(start); took > dialTimeout {
				t.Errorf("F-08: it took %s", took)
			}
		})
	}
}

// silentHello leaves even HELLO without an answer: a comment line is no reply.
func silentHello(command string) string {
	if strings.HasPrefix(command, "HELLO") {
		return "+" // the rest never comes
	}
	return ""
}

func TestACanceledDialEndsAtOnce(t *testing.T) {
	server := serve(t, nil, silentHello)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	start := time.Now()
	_, err := NewDialer().Dial(ctx, Target{Address: server.address()}, Credentials{})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestARefusalIsAReplyAndARefusedConnectionIsNot(t *testing.T) {
	server := serve(t, nil, answers(map[string]string{"HELLO": "-WRONGPASS invalid username-password pair or user is disabled.\r\n"}))
	_, err := NewDialer().Dial(context.Background(), Target{Address: server.address()}, Credentials{Username: "u", Password: "hunter2"})
	if !IsReply(err) || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("refused login: %v", err)
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v shows the password", err)
	}

	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = NewDialer().Dial(context.Background(), Target{Address: address}, Credentials{})
	if err == nil || IsReply(err) {
		t.Errorf("refused connection: %v", err)
	}
}

func TestIPv6AddressesAreDialledAndMetWithoutBrackets(t *testing.T) {
	server := serve(t, nil, answers(nil))
	node := dial(t, NewDialer(), Target{Address: server.address()})
	if err := node.Meet(context.Background(), "140b:a0a0:204:546d:b414:2:0:44fd"); err != nil {
		t.Fatal(err)
	}
	sent := server.sent()
	if got, want := sent[len(sent)-1], "CLUSTER MEET 140b:a0a0:204:546d:b414:2:0:44fd 6379 16379"; got != want {
		t.Errorf("V-01: sent %q, want %q", got, want)
	}
	for _, ip := range []string{"", "[140b::1]", "10.0.0.1:6379", "c-0a1b2"} {
		if err := node.Meet(context.Background(), ip); err == nil || !strings.Contains(err.Error(), "no IP address") {
			t.Errorf("V-01: meet %q: %v", ip, err)
		}
	}
	if n := len(server.sent()); n != len(sent) {
		t.Errorf("%d commands for addresses that are none", n-len(sent))
	}
}

func TestCredentialsPrintAsAPlaceholder(t *testing.T) {
	credentials := Credentials{Username: "_momento_operator", Password: "hunter2"}
	encoded, err := json.Marshal(credentials)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		fmt.Sprint(credentials), fmt.Sprintf("%+v", &credentials), fmt.Sprintf("%#v", credentials), string(encoded),
		fmt.Sprintf("%v", struct{ C Credentials }{credentials}),
	} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%q shows the password", text)
		}
	}
}

func TestALostConnectionIsMadeAnewAndOnlyReadsAreSentTwice(t *testing.T) {
	server := serve(t, nil, answers(map[string]string{"CLUSTER MYID": "$2\r\nme\r\n"}))
	node := dial(t, NewDialer(), Target{Address: server.address()})
	server.disconnectAll()
	if id, err := node.MyID(context.Background()); err != nil || id != "me" {
		t.Errorf("a read on a lost connection: %q, %v", id, err)
	}
	server.disconnectAll()
	if err := node.BumpEpoch(context.Background()); err == nil {
		t.Error("an order on a lost connection passes for done")
	}
	if err := node.BumpEpoch(context.Background()); err != nil {
		t.Errorf("the next order: %v", err)
	}
	if n := server.connections(); n != 3 {
		t.Errorf("%d connections", n)
	}
}
