package endpoints

import (
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/objects"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

// text writes the tables for people.
func (o *Options) text(w io.Writer, r Report) error {
	header := []string{"SHARD", "NODE", "ROLE", "INSIDE", "OUTSIDE", "ANNOUNCED"}
	if o.output == output.Wide {
		header = append([]string{"SHARD", "INDEX"}, header[1:]...)
	}
	if o.probe {
		header = append(header, "FROM HERE")
	}
	table := output.Table{Header: header}
	for _, n := range r.Nodes {
		outside := n.Pending
		switch {
		case n.Outside != nil:
			outside = n.Outside.String()
		case outside != "":
			outside = "<pending>"
		}
		row := []string{fmt.Sprint(n.Shard), n.Name, n.Role, n.Inside.String(), outside, n.Announced.String()}
		if o.output == output.Wide {
			row = append([]string{fmt.Sprint(n.Shard), fmt.Sprint(n.Index)}, row[1:]...)
		}
		if o.probe {
			row = append(row, n.Probe)
		}
		table.Rows = append(table.Rows, row)
	}
	if err := table.Write(w); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, o.explain(r))
	return err
}

// explain is what follows the table.
func (o *Options) explain(r Report) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("\nInside Kubernetes: %s", r.Service)
	line("  %s", o.cli(r, r.Service))
	line("  %s", uri(r, []Address{r.Service}))
	switch {
	case !r.External:
		line("\nExternal access is off. Turn it on with: %s", o.access.Command("valkey external enable "+r.Name, r.Namespace))
		return b.String()
	case r.Directed:
		line("\nOutside: every node directs clients to the addresses under OUTSIDE.")
	default:
		line("\nOutside: nodes still direct clients to the addresses under ANNOUNCED, so a cluster client outside fails at its first redirect.")
	}
	if r.Message != "" {
		line("  %s", r.Message)
	}
	if start := r.start(fromOutside); len(start) > 0 {
		line("  %s", o.cli(r, start[0]))
		line("  %s", uri(r, start[:1]))
	}
	if len(r.Records) > 0 {
		line("\nDNS records that have to exist:")
		for _, record := range r.Records {
			target := record.Means
			if len(record.Targets) > 0 {
				target = strings.Join(record.Targets, ", ")
			}
			line("  %s → %s", record.Name, target)
		}
	}
	if rewrites := r.rewrites(); len(rewrites) > 0 {
		line("\nClients in Kubernetes are given these names too. CoreDNS keeps their traffic inside with:")
		for _, rewrite := range rewrites {
			line("  %s", rewrite)
		}
	}
	if r.SecretRef != "" {
		line("\nClients have to trust the CA of Secret %s:", r.SecretRef)
		line("  %s", o.caCommand(r))
	}
	return b.String()
}

// rewrites are lines for the Corefile that lead names to Services inside. They hold
// where the ports outside are those of the Services.
func (r Report) rewrites() []string {
	if r.gateway || r.ServiceType == corev1.ServiceTypeNodePort {
		return nil
	}
	var lines []string
	for i, record := range r.Records {
		domain := r.Service.Host[strings.Index(r.Service.Host, ".")+1:]
		lines = append(lines, fmt.Sprintf("rewrite name exact %s %s.%s", record.Name, objects.ShardServiceName(r.Name, r.shards[i]), domain))
	}
	return lines
}

func (o *Options) caCommand(r Report) string {
	return o.access.Command(fmt.Sprintf(`get secret %s -o jsonpath='{.data.ca\.crt}'`, r.SecretRef), r.Namespace) + " | base64 -d > ca.crt"
}

// cli is a ready command line.
func (o *Options) cli(r Report, at Address) string {
	command := fmt.Sprintf("valkey-cli -c -h %s -p %d", at.Host, at.Port)
	if r.TLS {
		command += " --tls --cacert ca.crt"
	}
	return command
}

// uri lists addresses the way most client libraries take them.
func uri(r Report, start []Address) string {
	scheme := "valkey"
	if r.TLS {
		scheme = "valkeys"
	}
	var hosts []string
	for _, a := range start {
		hosts = append(hosts, a.String())
	}
	return scheme + "://" + strings.Join(hosts, ",")
}

// env is for a shell or a file of environment variables.
func env(r Report, start []Address) string {
	var nodes []string
	for _, a := range start {
		nodes = append(nodes, a.String())
	}
	return fmt.Sprintf("VALKEY_HOST=%s\nVALKEY_PORT=%d\nVALKEY_NODES=%s\nVALKEY_URI=%s\nVALKEY_TLS=%t\n",
		start[0].Host, start[0].Port, strings.Join(nodes, ","), uri(r, start), r.TLS)
}
