package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestStatIsReadAfterTheLastParenthesis(t *testing.T) {
	const tail = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21"
	start, status, err := parseStat("42 (odd) name (x)) " + tail)
	if err != nil || start != 4711 || status != "S" {
		t.Errorf("got %d, %q, %v", start, status, err)
	}
	if _, _, err := parseStat("42 (short) S 1"); err == nil {
		t.Error("a cut line is accepted")
	}
}

func TestAReusedNumberIsNotTheSameProcess(t *testing.T) {
	me, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !me.Alive() {
		t.Error("this process isn't alive")
	}
	if (ID{PID: me.PID, Start: me.Start + 1}).Alive() {
		t.Error("another start time is taken for this process")
	}
	if (ID{}).Alive() {
		t.Error("no process at all is alive")
	}
}

func TestAnEarlyEndIsReportedWithTheLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := Start("thing", exec.Command("sh", "-c", "echo said; exit 3"), log)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Exited
	if p.Err == nil || !strings.Contains(p.Err.Error(), "exit status 3") || !strings.Contains(p.Err.Error(), log) {
		t.Errorf("got %v", p.Err)
	}
	if content, err := os.ReadFile(log); err != nil || string(content) != "said\n" {
		t.Errorf("the log holds %q, %v", content, err)
	}
	if p.Alive() {
		t.Error("it is still called alive")
	}
}
