package peers

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/hack/bench/system"
)

func TestChoose(t *testing.T) {
	for list, want := range map[string]string{
		"": "", "all": "hazelcast coherence geode ignite", "geode": "geode", "ignite,hazelcast": "hazelcast ignite", "geode ignite": "geode ignite",
	} {
		chosen, err := Choose(list, "")
		var got []string
		for _, p := range chosen {
			got = append(got, p.Name())
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %v, %v, want %s", list, got, err, want)
		}
	}
	for _, bad := range []string{"infinispan", "geode,infinispan", "geode,geode", "all,geode", "All"} {
		if _, err := Choose(bad, ""); err == nil || !strings.Contains(err.Error(), "allowed: all, or some of hazelcast, coherence, geode, ignite") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Each thing that is missing is named with what brings it.
func TestMissing(t *testing.T) {
	for _, c := range []struct {
		peer Peer
		want string
	}{
		{Peer{mvn: "/usr/bin/mvn", java: "/usr/bin/java", javac: "/usr/bin/javac"}, ""},
		{Peer{java: "/usr/bin/java", javac: "/usr/bin/javac"}, "apt-get install maven"},
		{Peer{mvn: "/usr/bin/mvn"}, "apt-get install default-jdk-headless"},
		{Peer{mvn: "/usr/bin/mvn", java: "/usr/bin/java"}, "apt-get install default-jdk-headless"},
	} {
		if got := c.peer.Missing(); got == "" && c.want != "" || !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%+v: %q, want %q", c.peer, got, c.want)
		}
	}
}

// What the JVM is told: memory of a fixed size, and nothing on disk.
func TestCommandLine(t *testing.T) {
	p := Peer{java: "java", classpath: "a:b"}
	args := p.Generator()
	if args[0] != "java" || args[len(args)-1] != "dev.ordergrid.peers.Generator" || !slices.Equal(args[len(args)-3:len(args)-1], []string{"-cp", "a:b"}) {
		t.Errorf("%v", args)
	}
	for _, want := range []string{"-Xms512m", "-Xmx512m", "-XX:-UsePerfData"} {
		if !slices.Contains(args, want) {
			t.Errorf("%s is not in %v", want, args)
		}
	}
}

func TestLayout(t *testing.T) {
	for servers, want := range map[int]string{1: `^127\.0\.0\.1=\d+,\d+,\d+$`, 2: `^127\.0\.0\.1=\d+,\d+,\d+;\d+,\d+,\d+$`} {
		got, err := layout(system.Loopback{}, servers)
		if err != nil || !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%d servers: %s, %v", servers, got, err)
		}
		ports := regexp.MustCompile(`\d+`).FindAllString(got[len("127.0.0.1="):], -1)
		if slices.Sort(ports); len(slices.Compact(ports)) != 3*servers {
			t.Errorf("a port twice: %s", got)
		}
	}
}
