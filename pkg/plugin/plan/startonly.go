package plan

import "slices"

// startOnlySettings are the directives that Valkey 9.1 refuses to change at run time
// ("can't set immutable config", "can't set protected config", or not known as a
// setting but a directive of the file), less those that are the manager's own.
// Servers are the judges; the manager asks them, and a forecast can't.
var startOnlySettings = []string{
	"always-show-logo", "aof-rewrite-cpulist", "aof_rewrite_cpulist", "appenddirname", "appendfilename",
	"bgsave-cpulist", "bgsave_cpulist", "bio-cpulist", "bio_cpulist", "cluster-databases", "databases", "dbfilename", "disable-thp",
	"enable-debug-command", "enable-module-command", "enable-protected-configs", "hash-seed", "include", "loadmodule", "logfile", "mptcp",
	"pidfile", "rdbchecksum", "rdma-completion-vector", "rdma-rx-size", "repl-mptcp", "server-cpulist",
	"server_cpulist", "set-proc-title", "socket-mark-id", "syslog-enabled", "syslog-facility", "syslog-ident",
	"tcp-backlog", "unixsocket", "unixsocketgroup", "unixsocketperm",
}

// startOnly reports whether a server takes a setting only at its start.
func startOnly(key string) bool { return slices.Contains(startOnlySettings, key) }
