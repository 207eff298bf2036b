package sim

// network says who reaches whom. A host that is cut off reaches nobody; a split
// parts servers into two sides; the manager can be kept from all servers.
type network struct {
	// far are the names of the pods on the far side of a split.
	far map[string]bool
	// managerFar is whether the manager is on the far side, managerCut whether it
	// reaches no server at all, and clientsFar whether clients are on the far side.
	managerFar, managerCut, clientsFar bool
}

// connected reports whether packets pass between two servers.
func (w *world) connected(a, b *server) bool {
	if a == b {
		return true
	}
	if a.host != b.host && (a.host.isolated() || b.host.isolated()) {
		return false
	}
	return w.net.far[a.name] == w.net.far[b.name]
}

// talks reports whether b answers what a sends it.
func (w *world) talks(a, b *server) bool {
	return b.running && !b.hung && w.connected(a, b)
}

// managerReaches reports whether the manager's packets get to a server's address.
func (w *world) managerReaches(s *server) bool {
	return !w.net.managerCut && !s.host.isolated() && w.net.far[s.name] == w.net.managerFar
}

// clientReaches reports whether the client's packets get to a server's address.
func (w *world) clientReaches(s *server) bool {
	return !s.host.isolated() && w.net.far[s.name] == w.net.clientsFar
}
