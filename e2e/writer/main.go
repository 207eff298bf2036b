// Command writer plays an application that writes without a break and remembers
// what it was promised. It writes one unique key after the other to a cluster, on
// several clients, whatever happens to the cluster meanwhile. Told to stop, it
// reads every acknowledged key back, and says what failed, what is lost, and for
// how long no write succeeded.
//
// It is told on standard input, one command a line:
//
//	mark NAME    begin a window of this name
//	stop         write no more, read everything back, report
//	stop ADDRESS the same, reading through a node at another address
//
// The end of the input means stop. On standard output it prints a line of JSON when
// it begins to write ({"writing":true}), one for each mark, and the report at last.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "writer: "+err.Error())
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("writer", flag.ContinueOnError)
	o := options{}
	flags.StringVar(&o.address, "address", "", "host:port of any node")
	flags.StringVar(&o.ca, "ca", "", "file with the authority that TLS nodes are verified by; none: plaintext")
	flags.StringVar(&o.username, "username", "", "user; its password is read from $PASSWORD")
	flags.StringVar(&o.prefix, "prefix", "w", "what the names of all keys begin with")
	flags.IntVar(&o.clients, "clients", 4, "how many clients write at once")
	flags.DurationVar(&o.every, "every", 2*time.Millisecond, "from one write of a client to its next")
	flags.DurationVar(&o.patience, "patience", 500*time.Millisecond, "how long a connection may be silent before it is given up")
	flags.IntVar(&o.preload, "preload", 0, "how many keys to write before, as fast as they are taken")
	flags.IntVar(&o.size, "size", 16, "bytes of a preloaded value")
	ranges := flags.String("ranges", "0-16383", "slots to report on apart from each other, such as 0-5460,5461-10922,10923-16383")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if o.ranges, err = parseRanges(*ranges); err != nil {
		return err
	}
	w, err := connect(ctx, o)
	if err != nil {
		return err
	}
	defer w.close()
	say := json.NewEncoder(out)
	if err := w.preload(ctx); err != nil {
		return err
	}
	w.start(ctx)
	if err := say.Encode(map[string]bool{"writing": true}); err != nil {
		return err
	}
	again := "" // where to read everything back, if not where it was written
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		verb, name, _ := strings.Cut(lines.Text(), " ")
		if verb == "stop" {
			again = name
			break
		}
		if verb != "mark" {
			return fmt.Errorf("standard input has %q, which is neither mark nor stop", lines.Text())
		}
		w.log.mark(name)
		if err := say.Encode(map[string]string{"mark": name}); err != nil {
			return err
		}
	}
	w.stop()
	if again != "" {
		if err := w.reconnect(ctx, again); err != nil {
			return err
		}
	}
	report, err := w.report(ctx)
	if err != nil {
		return err
	}
	return say.Encode(report)
}
