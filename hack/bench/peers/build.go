package peers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/internal/checkout"
)

// buildLimit is the longest that Maven may take: it fetches up to 100 MB the first time.
const buildLimit = 15 * time.Minute

// Build fetches the peer into the user's Maven repository and compiles what starts and
// loads it into out/peers of the checkout.
func (p *Peer) Build(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	root, err := checkout.Root()
	if err != nil {
		return err
	}
	out := filepath.Join(root, "out", "peers")
	list := filepath.Join(out, p.name, "classpath")
	cmd := exec.CommandContext(ctx, p.mvn, "-B", "-q", "-f", filepath.Join(root, "hack", "bench", "peers", "java", "pom.xml"), "-Dpeer="+p.name, "-Dout="+out,
		"compile", "dependency:build-classpath", "-Dmdep.outputFile="+list)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mvn compile of %s (the first time it fetches what it needs, later it needs no network): %w\n%s", p.name, err, said)
	}
	dependencies, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	p.classpath = filepath.Join(out, p.name, "classes") + string(os.PathListSeparator) + strings.TrimSpace(string(dependencies))
	return nil
}

// opened are the packages of the JDK that the peers reach into.
var opened = []string{
	"java.base/java.io", "java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.lang.reflect", "java.base/java.math", "java.base/java.net",
	"java.base/java.nio", "java.base/java.text", "java.base/java.time", "java.base/java.util", "java.base/java.util.concurrent",
	"java.base/java.util.concurrent.atomic", "java.base/java.util.concurrent.locks", "java.base/jdk.internal.access", "java.base/jdk.internal.misc",
	"java.base/jdk.internal.ref", "java.base/sun.nio.ch", "java.base/sun.reflect.generics.reflectiveObjects", "java.base/sun.util.calendar",
	"java.management/com.sun.jmx.mbeanserver", "java.management/sun.management", "jdk.management/com.sun.management.internal",
	"jdk.internal.jvmstat/sun.jvmstat.monitor",
}

// jvm is the command line up to the main class. Memory is of a fixed size and there from
// the start; the collector is named, since a JVM chooses by what it thinks of the machine;
// no file is shared with tools.
func (p *Peer) jvm(heapMiB int) []string {
	args := []string{p.java, fmt.Sprintf("-Xms%dm", heapMiB), fmt.Sprintf("-Xmx%dm", heapMiB), "-XX:+AlwaysPreTouch", "-XX:+UseG1GC", "-XX:-UsePerfData",
		"-Djava.net.preferIPv4Stack=true", "-Djava.awt.headless=true"}
	for _, name := range opened {
		args = append(args, "--add-opens="+name+"=ALL-UNNAMED")
	}
	return append(append(args, p.Flags...), "-cp", p.classpath)
}
