package announce

import "github.com/kubectl-valkey/kubectl-valkey/pkg/api/v1alpha1"

// Moment is what a node that starts now is to announce, so that it fits those that
// are there already, whatever step they have come to. Siblings are what they
// announce. In.ExternalPort is 0 while clients can't be directed to it.
func Moment(in Input, siblings []v1alpha1.Announcement) Values {
	inside := in
	inside.ExternalPort = 0
	if len(siblings) == 0 {
		return For(in)
	}
	var ports, names, addresses bool
	for _, a := range siblings {
		ports = ports || a.ClientPort != 0
		if a.EndpointType == v1alpha1.EndpointHostname {
			names = true
		} else {
			addresses = true
		}
	}
	if ports && !addresses && in.ExternalPort != 0 && wantsNames(in.External) {
		return For(in)
	}
	v := For(inside)
	if !in.TLS && names {
		// The others are on their way to names, or back. The pod's IP is not known
		// when this is written; the name of the pod means the same.
		v.Hostname, v.EndpointType = in.PodDNSName, v1alpha1.EndpointHostname
	}
	return v
}

// Announcement is the part of the values that is recorded.
func (v Values) Announcement() v1alpha1.Announcement {
	return v1alpha1.Announcement{Hostname: v.Hostname, EndpointType: v.EndpointType, ClientPort: v.ClientPort}
}

// FromAnnouncement are the values that a record tells; it has no readable name.
func FromAnnouncement(a v1alpha1.Announcement) Values {
	return Values{Hostname: a.Hostname, EndpointType: a.EndpointType, ClientPort: a.ClientPort}
}

// DirectiveNames are what a server has to be asked for Read.
func DirectiveNames(tls bool) []string {
	var names []string
	for _, a := range (Values{}).Assignments(tls) {
		names = append(names, a[0])
	}
	return names
}
