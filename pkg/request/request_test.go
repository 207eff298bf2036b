package request_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

func asked(values ...string) *v1alpha1.ValkeyCluster {
	c := &v1alpha1.ValkeyCluster{}
	c.Annotations = map[string]string{"other": "value"}
	for _, v := range values {
		verb, value, _ := strings.Cut(v, "=")
		c.Annotations[request.Key(verb)] = value
	}
	return c
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	moment := time.Date(2026, 6, 1, 14, 0, 0, 0, time.FixedZone("", 7200))
	for _, r := range []request.Request{
		request.NewFailover("1a2b3c4d", 2, ""),
		request.NewFailover("1a2b3c4d", 0, "c-12345"),
		request.NewRestart("1a2b3c4d", moment),
		request.NewAcknowledge("1a2b3c4d"),
	} {
		c := asked(r.Verb + "=" + r.Value())
		read := request.Of(c)
		if len(read) != 1 || read[0].Value() != r.Value() || read[0].Verb != r.Verb || read[0].ID != "1a2b3c4d" {
			t.Errorf("%s %q is read as %+v", r.Verb, r.Value(), read)
		}
	}
	if shard, node, err := request.NewFailover("x", 7, "c-12345").Shard(); shard != 7 || node != "c-12345" || err != nil {
		t.Errorf("shard %d, node %q, %v", shard, node, err)
	}
	if got, err := request.NewRestart("x", moment).Moment(); !got.Equal(moment) || err != nil {
		t.Errorf("moment %s, %v", got, err)
	}
}

func TestWhatCannotBeReadSaysWhatIsMissing(t *testing.T) {
	for _, args := range [][]string{nil, {"one"}, {"-1"}, {"4294967296"}} {
		if _, _, err := (request.Request{Args: args}).Shard(); err == nil {
			t.Errorf("shard %q is read", args)
		}
		if _, err := (request.Request{Args: args}).Moment(); err == nil || !strings.Contains(err.Error(), "RFC 3339") {
			t.Errorf("moment %q: %v", args, err)
		}
	}
}

func TestOnlyAnnotationsWithAnIDAskForSomething(t *testing.T) {
	got := request.Of(asked("restart=b 2026-06-01T12:00:00Z", "failover=  a  1 ", "acknowledge= "))
	want := []request.Request{
		{Verb: "failover", ID: "a", Args: []string{"1"}},
		{Verb: "restart", ID: "b", Args: []string{"2026-06-01T12:00:00Z"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestARequestIsOpenUntilItIsAnsweredForGood(t *testing.T) {
	for what, c := range map[string]struct {
		answers []v1alpha1.RequestStatus
		open    bool
	}{
		"no answer":               {nil, true},
		"running":                 {[]v1alpha1.RequestStatus{{Verb: "failover", ID: "a", State: request.Running}}, true},
		"done":                    {[]v1alpha1.RequestStatus{{Verb: "failover", ID: "a", State: request.Done}}, false},
		"failed":                  {[]v1alpha1.RequestStatus{{Verb: "failover", ID: "a", State: request.Failed}}, false},
		"done, but a former one":  {[]v1alpha1.RequestStatus{{Verb: "failover", ID: "0", State: request.Done}}, true},
		"done, but of other verb": {[]v1alpha1.RequestStatus{{Verb: "restart", ID: "a", State: request.Done}}, true},
	} {
		cluster := asked("failover=a 1")
		cluster.Status.Requests = c.answers
		if _, open := request.Open(cluster, request.Failover); open != c.open {
			t.Errorf("%s: open %v, want %v", what, open, c.open)
		}
		if _, open := request.Open(cluster, request.Restart); open {
			t.Errorf("%s: a restart is open that nobody asked for", what)
		}
	}
}

func TestIDsAreEightHexDigits(t *testing.T) {
	id, err := request.NewID(strings.NewReader("abcd"))
	if err != nil || id != "61626364" {
		t.Errorf("id %q, %v", id, err)
	}
	if _, err := request.NewID(strings.NewReader("abc")); err == nil {
		t.Error("an ID is made of too little")
	}
}
