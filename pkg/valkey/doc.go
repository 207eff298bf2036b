// Package valkey is the manager's connection to one server: it dials it, keeps
// connections for a while, and sends it typed commands. Whatever it can send is
// built in commands.go, so that CommandsSent lists all of it.
//
// It follows no redirect and takes no server's word for another's address: a
// node is who was dialled.
package valkey
