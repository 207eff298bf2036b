package announce

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
)

const (
	inside  = "c-1a2b3.c.n.svc.cluster.local"
	outside = "shard-2.valkey.example.com"
)

func input(tls bool, external *v1alpha1.ExternalAccess, port int32) Input {
	return Input{TLS: tls, External: external, NodeName: "c-1a2b3", PodDNSName: inside, ShardIndex: 2, ExternalPort: port}
}

func TestANodeAnnouncesWhatTheTableSays(t *testing.T) {
	off := &v1alpha1.ExternalAccess{Domain: "valkey.example.com", PreferredEndpointType: v1alpha1.EndpointHostname}
	on := &v1alpha1.ExternalAccess{Enabled: true}
	domain := &v1alpha1.ExternalAccess{Enabled: true, Domain: "valkey.example.com"}
	ip := &v1alpha1.ExternalAccess{Enabled: true, Domain: "valkey.example.com", PreferredEndpointType: v1alpha1.EndpointIP}
	names := &v1alpha1.ExternalAccess{Enabled: true, Domain: "valkey.example.com", PreferredEndpointType: v1alpha1.EndpointHostname}
	for name, tc := range map[string]struct {
		in   Input
		want Values
		conf [][2]string
	}{
		"plaintext, off": {in: input(false, nil, 0), want: Values{EndpointType: "ip"}},
		"plaintext, block that isn't enabled": {
			in: input(false, off, 30080), want: Values{EndpointType: "ip"},
		},
		"plaintext, on, no domain": {
			in:   input(false, on, 30080),
			want: Values{EndpointType: "ip", HumanNodename: "c-1a2b3"},
			conf: [][2]string{{"cluster-announce-human-nodename", "c-1a2b3"}},
		},
		"plaintext, on, domain": {
			in:   input(false, domain, 30080),
			want: Values{Hostname: outside, EndpointType: "ip", HumanNodename: "c-1a2b3"},
			conf: [][2]string{{"cluster-announce-hostname", outside}, {"cluster-announce-human-nodename", "c-1a2b3"}},
		},
		"plaintext, on, domain, ip": {
			in:   input(false, ip, 30080),
			want: Values{Hostname: outside, EndpointType: "ip", HumanNodename: "c-1a2b3"},
			conf: [][2]string{{"cluster-announce-hostname", outside}, {"cluster-announce-human-nodename", "c-1a2b3"}},
		},
		"plaintext, on, hostname": {
			in:   input(false, names, 30080),
			want: Values{Hostname: outside, EndpointType: "hostname", ClientPort: 30080, HumanNodename: "c-1a2b3"},
			conf: [][2]string{{"cluster-announce-hostname", outside}, {"cluster-preferred-endpoint-type", "hostname"}, {"cluster-announce-client-port", "30080"}, {"cluster-announce-human-nodename", "c-1a2b3"}},
		},
		"plaintext, on, hostname, port unknown": {
			in:   input(false, names, 0),
			want: Values{Hostname: outside, EndpointType: "ip", HumanNodename: "c-1a2b3"},
			conf: [][2]string{{"cluster-announce-hostname", outside}, {"cluster-announce-human-nodename", "c-1a2b3"}},
		},
		"TLS, off": {
			in:   input(true, nil, 0),
			want: Values{Hostname: inside, EndpointType: "hostname"},
			conf: [][2]string{{"cluster-announce-hostname", inside}, {"cluster-preferred-endpoint-type", "hostname"}},
		},
		"TLS, block that isn't enabled": {
			in:   input(true, off, 30080),
			want: Values{Hostname: inside, EndpointType: "hostname"},
			conf: [][2]string{{"cluster-announce-hostname", inside}, {"cluster-preferred-endpoint-type", "hostname"}},
		},
		"TLS, on, domain": {
			in:   input(true, domain, 30080),
			want: Values{Hostname: inside, EndpointType: "hostname", HumanNodename: "c-1a2b3"},
			conf: [][2]string{{"cluster-announce-hostname", inside}, {"cluster-preferred-endpoint-type", "hostname"}, {"cluster-announce-human-nodename", "c-1a2b3"}},
		},
		"TLS, on, hostname": {
			in:   input(true, names, 31443),
			want: Values{Hostname: outside, EndpointType: "hostname", ClientPort: 31443, HumanNodename: "c-1a2b3"},
			conf: [][2]string{{"cluster-announce-hostname", outside}, {"cluster-preferred-endpoint-type", "hostname"}, {"cluster-announce-client-tls-port", "31443"}, {"cluster-announce-human-nodename", "c-1a2b3"}},
		},
		"TLS, on, hostname, port unknown": {
			in:   input(true, names, 0),
			want: Values{Hostname: inside, EndpointType: "hostname", HumanNodename: "c-1a2b3"},
			conf: [][2]string{{"cluster-announce-hostname", inside}, {"cluster-preferred-endpoint-type", "hostname"}, {"cluster-announce-human-nodename", "c-1a2b3"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := For(tc.in)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("values (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tc.conf, got.Directives(tc.in.TLS)); diff != "" {
				t.Errorf("directives (-want +got)\n%s", diff)
			}
		})
	}
}

// E-01 and the rule that a name and another mode's port never meet.
func TestOverAllInputsOnlyClientFacingDirectivesAreSetAndAPortNeverWithoutItsName(t *testing.T) {
	for _, tls := range []bool{false, true} {
		for _, enabled := range []bool{false, true} {
			for _, domain := range []string{"", "valkey.example.com"} {
				for _, preferred := range []v1alpha1.EndpointType{"", v1alpha1.EndpointIP, v1alpha1.EndpointHostname} {
					for _, port := range []int32{0, 31234} {
						external := &v1alpha1.ExternalAccess{Enabled: enabled, Domain: domain, PreferredEndpointType: preferred, HostnamePrefix: "node"}
						v := For(input(tls, external, port))
						for _, line := range append(v.Directives(tls), v.Assignments(tls)...) {
							switch line[0] {
							case "cluster-announce-port", "cluster-announce-tls-port", "cluster-announce-bus-port", "cluster-announce-ip":
								t.Errorf("%+v sets %s", external, line[0])
							}
							if strings.HasSuffix(line[0], "client-port") && tls || strings.HasSuffix(line[0], "client-tls-port") && !tls {
								t.Errorf("%+v with TLS %v sets %s", external, tls, line[0])
							}
						}
						if v.EndpointType == v1alpha1.EndpointHostname && v.Hostname == "" {
							t.Errorf("%+v with TLS %v directs clients to a name that isn't announced", external, tls)
						}
						directed := v.Hostname == "node-2.valkey.example.com" && v.EndpointType == v1alpha1.EndpointHostname
						if (v.ClientPort != 0) != directed {
							t.Errorf("%+v with TLS %v pairs %q (%s) with port %d", external, tls, v.Hostname, v.EndpointType, v.ClientPort)
						}
					}
				}
			}
		}
	}
}

func TestAssignmentsClearWhatIsNoLongerAnnounced(t *testing.T) {
	want := [][2]string{
		{"cluster-announce-hostname", ""},
		{"cluster-preferred-endpoint-type", "ip"},
		{"cluster-announce-client-port", "0"},
		{"cluster-announce-human-nodename", ""},
	}
	if diff := cmp.Diff(want, Values{}.Assignments(false)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestShardHostnameNeedsADomain(t *testing.T) {
	for want, external := range map[string]*v1alpha1.ExternalAccess{
		"":                     {HostnamePrefix: "p"},
		"shard-7.example.com":  {Domain: "example.com"},
		"valkey-7.example.com": {Domain: "example.com", HostnamePrefix: "valkey"},
	} {
		if got := ShardHostname(external, 7); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := ShardHostname(nil, 7); got != "" {
		t.Errorf("got %q without external access", got)
	}
}
