package networkpolicy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/netpol"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/kube"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
)

const (
	// settle is how long a flow may take to become what it should be: network
	// plugins learn of new pods late.
	settle = 20 * time.Second
	// oneTry bounds one connection; valkey-cli gives up connecting sooner. A
	// resolver that is out of reach is waited for longest.
	oneTry         = 45 * time.Second
	connectSeconds = "3"
)

// What became of a flow.
const (
	passes  = "passes"
	blocked = "blocked"
	unknown = "unknown"

	resultOK      = "ok"
	resultWrong   = "wrong"
	resultSkipped = "skipped"
)

// FlowResult is a row of what --test prints. The form is stable.
type FlowResult struct {
	From string `json:"from"`
	To   string `json:"to"`
	Port int32  `json:"port,omitempty"`
	// Want and Got are passes or blocked; Got is unknown when it was not found out.
	Want string `json:"want"`
	Got  string `json:"got"`
	// Result is ok, wrong or skipped.
	Result string `json:"result"`
	Detail string `json:"detail,omitempty"`
}

// Report is what --test prints.
type Report struct {
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"`
	Flows     []FlowResult `json:"flows"`
}

// tryOut starts probe pods, tries every flow, and removes the pods.
func (o *Options) tryOut(ctx context.Context, c netpol.Cluster) (err error) {
	servers, err := o.servers(ctx)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("not within %s", o.timeout))
	defer cancel()
	all, remove := o.places(limited, c, &servers[0])
	defer func() { err = errors.Join(err, remove()) }()
	flows := c.Flows()
	results := make([]FlowResult, len(flows))
	// What is allowed comes first: when it passes, the network plugin knows the
	// pods, and what is blocked after that is blocked by a policy.
	for _, allowed := range []bool{true, false} {
		var wg sync.WaitGroup
		for i, f := range flows {
			if f.Allowed == allowed {
				wg.Go(func() { results[i] = o.try(limited, f, all[f.From], servers) })
			}
		}
		wg.Wait()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return o.report(results)
}

// servers are the cluster's pods that answer, the first of which flows begin in.
func (o *Options) servers(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := kube.List(ctx, o.client, &list, "pods", client.InNamespace(o.namespace),
		client.MatchingLabels{v1alpha1.LabelName: v1alpha1.ApplicationName, v1alpha1.LabelInstance: o.name})
	if err != nil {
		return nil, err
	}
	var running []corev1.Pod
	for _, pod := range list.Items {
		if pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" && pod.DeletionTimestamp.IsZero() {
			running = append(running, pod)
		}
	}
	if len(running) == 0 {
		return nil, fmt.Errorf("cluster %s has no running pod to connect to; see %s", o.name, o.access.Command("valkey status "+o.name, o.namespace))
	}
	return running, nil
}

// try finds out what becomes of a flow. It is tried again until it is as it should
// be, or has been otherwise for a while.
func (o *Options) try(ctx context.Context, f netpol.Flow, from *place, servers []corev1.Pod) FlowResult {
	r := FlowResult{From: string(f.From), To: string(f.To), Port: f.Port, Want: blocked, Got: unknown, Result: resultSkipped}
	if f.Allowed {
		r.Want = passes
	}
	host, port, err := address(f, servers)
	switch {
	case from == nil:
		r.Detail = "no pod can be made that is a client"
	case from.err != nil:
		r.Detail = output.Clean(from.err.Error())
	case err != nil:
		r.Detail = err.Error()
	default:
		o.tryUntil(ctx, f, from, host, port, &r)
	}
	return r
}

func (o *Options) tryUntil(ctx context.Context, f netpol.Flow, from *place, host, port string, r *FlowResult) {
	end := o.clock.Now().Add(settle)
	for {
		r.Got, r.Detail = o.connect(ctx, f, from, host, port)
		switch {
		case r.Got == r.Want:
			r.Result, r.Detail = resultOK, ""
			return
		case o.clock.Now().After(end) || o.pause(ctx) != nil:
			if r.Got != unknown {
				r.Result = resultWrong
			}
			return
		}
	}
}

// address is where a flow goes to: to another pod than it comes from.
func address(f netpol.Flow, servers []corev1.Pod) (host, port string, err error) {
	switch f.To {
	case netpol.ToDNS, netpol.ToAPIServer:
		// Resolving a name needs DNS; connecting to it is the other flow.
		return "kubernetes.default.svc", "443", nil
	}
	target := servers[len(servers)-1]
	if f.From == netpol.FromServer && len(servers) == 1 {
		return "", "", errors.New("the cluster has one pod only, which no policy keeps from itself")
	}
	addr, err := netip.ParseAddr(target.Status.PodIP)
	if err != nil {
		return "", "", fmt.Errorf("address of pod %s: %w", target.Name, err)
	}
	return addr.String(), strconv.Itoa(int(f.Port)), nil
}

// connect makes one connection with valkey-cli. Whatever the other side answers, or
// that it hangs up on a line that it doesn't understand, shows that it was reached.
func (o *Options) connect(ctx context.Context, f netpol.Flow, from *place, host, port string) (got, detail string) {
	ctx, cancel := context.WithTimeout(ctx, oneTry)
	defer cancel()
	// Two buffers: both streams are copied at once, and a buffer is for one reader.
	var out, errOut bytes.Buffer
	err := o.run(ctx, kube.Command{
		Namespace: from.pod.Namespace, Pod: from.pod.Name, Container: from.container,
		Argv:   []string{"valkey-cli", "-t", connectSeconds, "-h", host, "-p", port, "PING"},
		Stdout: &out, Stderr: &errOut,
	})
	said := output.Clean(out.String() + " " + errOut.String())
	connected := !strings.Contains(said, "Could not connect")
	silent := said == ""
	if silent && err != nil {
		said = output.Clean(err.Error())
	}
	unresolved := strings.Contains(said, "name resolution") || strings.Contains(said, "not known")
	var exited interface{ ExitStatus() int }
	switch {
	case err != nil && !errors.As(err, &exited):
		return unknown, output.Clean(err.Error())
	case f.To == netpol.ToDNS && unresolved:
		return blocked, said
	case f.To == netpol.ToDNS && !silent:
		return passes, ""
	case unresolved, silent: // it said nothing, so nobody knows
		return unknown, said
	case connected:
		return passes, said
	}
	return blocked, said
}

// report prints the results and says whether all are as they should be.
func (o *Options) report(results []FlowResult) error {
	if o.output != output.Text {
		text, err := output.Data(o.output, Report{Namespace: o.namespace, Name: o.name, Flows: results})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(o.streams.Out, text); err != nil {
			return err
		}
	} else if err := o.table(results).Write(o.streams.Out); err != nil {
		return err
	}
	count := map[string]int{}
	for _, r := range results {
		count[r.Result]++
	}
	switch {
	case count[resultWrong] > 0:
		return fmt.Errorf("%s not as the policies should make them: apply them with --apply, or look for others that select these pods", output.Plural(count[resultWrong], "flow"))
	case count[resultOK] == 0:
		return errors.New("no flow was tried out; the details say why")
	}
	return nil
}

func (o *Options) table(results []FlowResult) output.Table {
	palette := o.flags.Palette(o.streams.Out)
	t := output.Table{Header: []string{"FROM", "TO", "PORT", "WANT", "GOT", "RESULT", "DETAIL"}}
	for _, r := range results {
		port := ""
		if r.Port > 0 {
			port = strconv.Itoa(int(r.Port))
		}
		paint := map[string]func(string) string{resultOK: palette.Good, resultWrong: palette.Bad, resultSkipped: palette.Warn}[r.Result]
		t.Rows = append(t.Rows, []string{r.From, r.To, port, r.Want, r.Got, paint(r.Result), r.Detail})
	}
	return t
}
