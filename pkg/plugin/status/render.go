package status

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/inspect"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/plugin/output"
	"github.com/kubectl-valkey/kubectl-valkey/pkg/request"
)

// expirySoon is when the days that a certificate has left become a warning.
const expirySoon = 14

// renderer turns reports into text. It only formats: everything that it shows was
// decided before.
type renderer struct {
	palette output.Palette
	now     time.Time
	wide    bool
	// namespaces and headers are about the list of clusters.
	namespaces, headers bool
}

// content is what the command shows: a *Report or a List.
type content interface {
	text(v renderer) (string, error)
}

func (r *Report) text(v renderer) (string, error) { return v.report(r) }

func (l List) text(v renderer) (string, error) { return v.list(l.Clusters) }

// report is the text of one cluster.
func (v renderer) report(r *Report) (string, error) {
	var b bytes.Buffer
	v.header(&b, r)
	for _, section := range []struct {
		title string
		table output.Table
	}{
		{"Shards", v.shards(r)},
		{"Nodes", v.nodes(r)},
		{"Conditions", v.conditions(r)},
		{"Requests", v.requests(r)},
		{"Events", v.events(r)},
	} {
		if len(section.table.Rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", v.palette.Title(section.title))
		if err := section.table.Write(&b); err != nil {
			return "", err
		}
	}
	v.footer(&b, r)
	return b.String(), nil
}

func (v renderer) header(b *bytes.Buffer, r *Report) {
	line := func(key, value string) {
		if value != "" {
			fmt.Fprintf(b, "%s %s\n", v.palette.Title(fmt.Sprintf("%-10s", key+":")), output.Safe(value))
		}
	}
	line("Cluster", r.Namespace+"/"+r.Name)
	line("State", v.state(r))
	if r.ManagerSilent != "" {
		line("Manager", v.palette.Bad(r.ManagerSilent))
	}
	if r.Paused {
		line("Paused", v.palette.Warn("the manager reports, but changes nothing"))
	}
	if r.DataLoss != "" {
		line("Data loss", fmt.Sprintf("%s; acknowledge it with: kubectl valkey acknowledge %s -n %s", v.palette.Bad(r.DataLoss), r.Name, r.Namespace))
	}
	if r.AwaitedCopies != "" {
		line("Awaited", v.palette.Bad(r.AwaitedCopies))
	}
	if r.Ready != "" {
		line("Ready", r.Ready+" nodes in sync")
	}
	line("Shape", output.Shape(r.Shards, r.ReplicasPerShard))
	line("Config", v.config(r))
	line("Image", strings.Join(r.Images, ", "))
	line("TLS", v.tls(r))
	line("Endpoint", r.Endpoint)
	line("Users", v.users(r))
	line("Age", v.age(r.CreatedAt))
}

// state is the verdict. Its message stands here only if no condition has it.
func (v renderer) state(r *Report) string {
	if r.Healthy {
		return v.palette.Good(r.State + ", healthy")
	}
	paint, verdict := v.palette.Bad, "not healthy"
	if r.State == string(v1alpha1.StateCreating) {
		paint, verdict = v.palette.Warn, "not ready yet"
	}
	if r.State != "" {
		verdict = r.State + ", " + verdict
	}
	text := paint(verdict)
	if r.Reason != "" && r.Reason != r.State {
		text += ": " + output.Clean(r.Reason)
	}
	for _, c := range r.shown() {
		if r.Message == "" || output.Clean(c.Message) == r.Message {
			return text
		}
	}
	return text + ": " + r.Message
}

func (v renderer) config(r *Report) string {
	if r.Resolved == nil {
		return configInBrief(r)
	}
	text := strings.Join(r.Resolved.Chain, " → ")
	if text == "" {
		text = r.Config
	}
	if r.Resolved.Version != "" {
		text += fmt.Sprintf(" (%s, Valkey %s)", r.Resolved.Image, r.Resolved.Version)
	}
	for _, p := range r.Resolved.Problems {
		text += "; " + v.palette.Bad(output.Clean(p))
	}
	return text
}

// configInBrief takes what the config comes to from the manager's own words: the
// config is outside the namespace, and may not be readable.
func configInBrief(r *Report) string {
	for _, c := range r.Conditions {
		if c.Type != v1alpha1.ConditionConfigResolved || c.Status != metav1.ConditionTrue {
			continue
		}
		if rest, ok := strings.CutPrefix(output.Clean(c.Message), "config "+r.Config+" "); ok {
			return fmt.Sprintf("%s (%s)", r.Config, rest)
		}
	}
	return r.Config
}

func (v renderer) tls(r *Report) string {
	c := r.Certificate
	if c == nil {
		return "off"
	}
	text := "Secret " + c.Secret
	if c.DaysLeft == nil {
		return text
	}
	text += fmt.Sprintf(", served by %d of %s, ", c.ServedBy, output.Plural(len(r.Nodes), "node"))
	date := c.NotAfter.UTC().Format(time.DateOnly)
	switch days := *c.DaysLeft; {
	case days < 0:
		return text + v.palette.Bad("expired on "+date)
	case days <= expirySoon:
		return text + v.palette.Warn(fmt.Sprintf("expires in %s, on %s", output.Plural(days, "day"), date))
	default:
		return text + fmt.Sprintf("expires in %d days, on %s", days, date)
	}
}

func (v renderer) users(r *Report) string {
	switch {
	case r.Users.Open == nil:
		return "not known"
	case *r.Users.Open:
		return v.palette.Warn("open: no user is bound, so whoever reaches the cluster may do everything")
	case len(r.Users.Bound) == 0:
		return "bound"
	}
	return strings.Join(r.Users.Bound, ", ")
}

func (v renderer) shards(r *Report) output.Table {
	t := output.Table{Header: []string{"SHARD", "SLOTS", "COUNT", "PRIMARY", "REPLICAS"}}
	for _, s := range r.ShardList {
		primary := s.Primary
		if primary == "" {
			primary = v.palette.Bad("none")
		}
		t.Rows = append(t.Rows, []string{
			fmt.Sprint(s.Index), s.Slots, fmt.Sprint(s.SlotCount), primary, strings.Join(s.Replicas, ","),
		})
	}
	return t
}

func (v renderer) nodes(r *Report) output.Table {
	t := output.Table{Header: []string{"NODE", "SHARD", "ROLE", "IN SYNC", "LAG", "POD", "ZONE", "HOST", "IP", "REASON"}}
	if v.wide {
		t.Header = append(t.Header[:9:9], "LIFECYCLE", "NODE ID", "IMAGE", "REASON")
	}
	for _, n := range r.Nodes {
		inSync := v.palette.Good("yes")
		if !n.InSync {
			inSync = v.palette.Warn("no")
		}
		shard := fmt.Sprint(n.Shard)
		if n.Shard < 0 {
			shard = ""
		}
		row := []string{n.Name, shard, n.Role, inSync, v.lag(n), v.pod(n.Pod), n.Zone, n.Host, n.IP}
		if v.wide {
			row = append(row, n.Lifecycle, n.NodeID, n.Image)
		}
		t.Rows = append(t.Rows, append(row, reason(n)))
	}
	return t
}

// lag is how far a replica is behind its primary.
func (v renderer) lag(n inspect.Node) string {
	switch {
	case n.LagBytes == nil:
		return ""
	case *n.LagBytes == 0:
		return "<1Mi"
	}
	return v.palette.Warn(">=" + resource.NewQuantity(*n.LagBytes, resource.BinarySI).String())
}

func (v renderer) pod(p *inspect.PodState) string {
	switch {
	case p == nil:
		return ""
	case p.Problem != "":
		return v.palette.Bad(p.Phase)
	case p.Phase == "Running":
		return v.palette.Good(p.Phase)
	}
	return v.palette.Warn(p.Phase)
}

// reason says why a node is not simply there.
func reason(n inspect.Node) string {
	switch {
	case n.Problem != "":
		return n.Problem
	case n.Lifecycle == string(v1alpha1.LifecycleJoining), n.Lifecycle == string(v1alpha1.LifecycleLeaving):
		return strings.ToLower(n.Lifecycle)
	}
	return ""
}

func (v renderer) conditions(r *Report) output.Table {
	t := output.Table{Header: []string{"CONDITION", "STATUS", "REASON", "SINCE", "MESSAGE"}}
	for _, c := range r.shown() {
		status := v.palette.Bad(string(c.Status))
		switch {
		case inspect.AtRest(c):
			status = v.palette.Good(string(c.Status))
		case c.Type == v1alpha1.ConditionProgressing:
			status = v.palette.Warn(string(c.Status))
		}
		t.Rows = append(t.Rows, []string{c.Type, status, output.Clean(c.Reason), v.age(c.LastTransitionTime), output.Clean(c.Message)})
	}
	return t
}

// requests are those that are not done: of the others nobody needs to hear.
func (v renderer) requests(r *Report) output.Table {
	t := output.Table{Header: []string{"REQUEST", "ID", "STATE", "MESSAGE"}}
	for _, q := range r.Requests {
		state := v.palette.Warn(q.State)
		switch q.State {
		case request.Done:
			continue
		case request.Failed:
			state = v.palette.Bad(q.State)
		}
		t.Rows = append(t.Rows, []string{q.Verb, output.Clean(q.ID), state, q.Message})
	}
	return t
}

func (v renderer) events(r *Report) output.Table {
	t := output.Table{Header: []string{"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"}}
	for _, e := range r.Events {
		kind := e.Type
		if kind == "Warning" {
			kind = v.palette.Warn(kind)
		}
		message := e.Message
		if e.Count > 1 {
			message += fmt.Sprintf(" (x%d)", e.Count)
		}
		t.Rows = append(t.Rows, []string{v.age(e.LastSeen), kind, output.Clean(e.Reason), e.Object, message})
	}
	return t
}

func (v renderer) footer(b *bytes.Buffer, r *Report) {
	if r.NextAction != "" {
		fmt.Fprintf(b, "\n%s %s\n", v.palette.Title("Next:"), r.NextAction)
	}
	for i, u := range r.Unavailable {
		if i == 0 {
			b.WriteString("\n")
		}
		text := u.Error
		if !strings.HasPrefix(strings.TrimPrefix(text, "valkey"), u.Part) {
			text = u.Part + ": " + text
		}
		fmt.Fprintf(b, "%s %s\n", v.palette.Warn("Not shown:"), text)
	}
}

// list is the text of several clusters.
func (v renderer) list(clusters []Summary) (string, error) {
	t := output.Table{Header: []string{"NAME", "STATE", "READY", "SHARDS", "REPLICAS", "CONFIG", "AGE", "REASON"}}
	if v.wide {
		t.Header = append(t.Header[:7:7], "TLS", "ENDPOINT", "REASON")
	}
	for _, c := range clusters {
		state := orDash(c.State)
		switch {
		case c.Healthy:
			state = v.palette.Good(state)
		case c.State == string(v1alpha1.StateCreating):
			state = v.palette.Warn(state)
		default:
			state = v.palette.Bad(state)
		}
		row := []string{c.Name, state, c.Ready, fmt.Sprint(c.Shards), fmt.Sprint(c.ReplicasPerShard), c.Config, v.age(c.CreatedAt)}
		if v.wide {
			row = append(row, map[bool]string{true: "on", false: "off"}[c.TLS], c.Endpoint)
		}
		t.Rows = append(t.Rows, append(row, shortReason(c)))
	}
	if v.namespaces {
		t.Header = append([]string{"NAMESPACE"}, t.Header...)
		for i := range t.Rows {
			t.Rows[i] = append([]string{clusters[i].Namespace}, t.Rows[i]...)
		}
	}
	if !v.headers {
		t.Header = nil
	}
	var b bytes.Buffer
	if err := t.Write(&b); err != nil {
		return "", err
	}
	return b.String(), nil
}

// shortReason fits a table.
func shortReason(c Summary) string {
	switch {
	case c.Healthy && c.Paused:
		return "Paused"
	case c.Healthy:
		return ""
	}
	return output.Clean(c.Reason)
}

func (v renderer) age(t metav1.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(v.now.Sub(t.Time))
}

func orDash(s string) string {
	if s == "" {
		return output.Empty
	}
	return s
}
