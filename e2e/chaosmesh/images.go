package chaosmesh

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/e2e/artifact"
	"github.com/ordergrid/ordergrid/e2e/cluster/image"
)

// tools are the programs the daemon runs, by the name it calls them and the one
// they have here. iptables is the one that talks to the kernel's ip_tables, as in
// Chaos Mesh's own image.
var tools = []struct {
	artifact.Tool
	name string
}{
	{artifact.Tool{Program: "iptables-legacy", Package: "iptables"}, "iptables"},
	{artifact.Tool{Program: "ipset", Package: "ipset"}, "ipset"},
	{artifact.Tool{Program: "tc", Package: "iproute2"}, "tc"},
	{artifact.Tool{Program: "ip", Package: "iproute2"}, "ip"},
	{artifact.Tool{Program: "stress-ng", Package: "stress-ng"}, "stress-ng"},
	{artifact.Tool{Program: "choom", Package: "util-linux"}, "choom"},
}

// The images' names; the tag is the hash of what is in them.
const (
	managerImage = image.Registry + "/chaos-mesh"
	daemonImage  = image.Registry + "/chaos-daemon"
)

// images are archives of the two images and their common tag.
type images struct {
	tag      string
	archives []string
}

// buildImages writes the images' archives unless they are there.
func buildImages(ctx context.Context, bin string, report func(string, ...any)) (images, error) {
	if missing := missingTools(); len(missing) > 0 {
		report("installing Debian packages: %s", strings.Join(missing, " "))
		if err := artifact.InstallPackages(ctx, missing); err != nil {
			return images{}, err
		}
	}
	manager, err := withLibraries(ctx, []image.Copy{{Source: filepath.Join(bin, "chaos-controller-manager"), Target: "/usr/local/bin/chaos-controller-manager"}})
	if err != nil {
		return images{}, err
	}
	daemon, err := daemonFiles(ctx, bin)
	if err != nil {
		return images{}, err
	}
	tag, err := hash(append(slices.Clone(manager), daemon...))
	if err != nil {
		return images{}, err
	}
	made := images{tag: tag}
	for ref, files := range map[string][]image.Copy{managerImage: manager, daemonImage: daemon} {
		archive := filepath.Join(filepath.Dir(bin), "images", fmt.Sprintf("%s-%s.tar", filepath.Base(ref), tag))
		made.archives = append(made.archives, archive)
		if _, err := os.Stat(archive); err == nil {
			continue
		}
		report("writing image %s:%s", ref, tag)
		d := &image.Dockerfile{Copies: relative(files), User: "0:0", Env: []string{"PATH=" + artifact.SystemPath}}
		if _, err := image.WriteFile(archive, d, "/", ref+":"+tag, runtime.GOARCH); err != nil {
			return images{}, err
		}
	}
	slices.Sort(made.archives)
	return made, prune(made.archives)
}

// prune removes the archives of earlier versions: each pair is 200 MB.
func prune(keep []string) error {
	all, err := filepath.Glob(filepath.Join(filepath.Dir(keep[0]), "*.tar"))
	for _, path := range all {
		if !slices.Contains(keep, path) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

func missingTools() []string {
	var all []artifact.Tool
	for _, t := range tools {
		all = append(all, t.Tool)
	}
	return artifact.MissingTools(all)
}

// daemonFiles are Chaos Mesh's programs, the tools, iptables' extensions, and two
// directories a process needs, which come with a file.
func daemonFiles(ctx context.Context, bin string) ([]image.Copy, error) {
	files := []image.Copy{{Source: "/dev/null", Target: "/run/.keep"}, {Source: "/dev/null", Target: "/tmp/.keep"}}
	for _, name := range []string{"chaos-daemon", "nsexec", "memStress", "pause"} {
		files = append(files, image.Copy{Source: filepath.Join(bin, name), Target: "/usr/local/bin/" + name})
	}
	files = append(files, image.Copy{Source: filepath.Join(bin, "chaos-daemon-helper"), Target: "/usr/local/bin/cdh"})
	for _, t := range tools {
		path, err := artifact.LookPath(t.Program)
		if err != nil {
			return nil, err
		}
		files = append(files, image.Copy{Source: path, Target: "/usr/sbin/" + t.name})
	}
	extensions, err := filepath.Glob("/usr/lib/*/xtables/lib*t_*.so")
	if err != nil || len(extensions) == 0 {
		return nil, errors.Join(errors.New("no iptables extensions in /usr/lib/*/xtables: reinstall the Debian package iptables"), err)
	}
	for _, path := range extensions {
		files = append(files, image.Copy{Source: path, Target: path})
	}
	return withLibraries(ctx, files)
}

// withLibraries adds what the dynamic linker would load, at the paths it found it at.
func withLibraries(ctx context.Context, files []image.Copy) ([]image.Copy, error) {
	found := map[string]bool{}
	for _, file := range files {
		// It exits with 1 for a static program and for a file that is none.
		out, err := exec.CommandContext(ctx, "ldd", file.Source).Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			return nil, err
		}
		libraries, err := parseLDD(string(out))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file.Source, err)
		}
		for _, path := range libraries {
			found[path] = true
		}
	}
	for path := range found {
		files = append(files, image.Copy{Source: path, Target: path})
	}
	slices.SortFunc(files, func(a, b image.Copy) int { return strings.Compare(a.Target, b.Target) })
	return files, nil
}

// parseLDD reads lines like "libc.so.6 => /lib/x/libc.so.6 (0x7f)",
// "/lib64/ld-linux-x86-64.so.2 (0x7f)" and "linux-vdso.so.1 (0x7f)", of which the
// last is the kernel's.
func parseLDD(text string) (paths []string, err error) {
	for line := range strings.Lines(text) {
		name, path, resolved := strings.Cut(strings.TrimSpace(line), " => ")
		if !resolved {
			path = name
		}
		path, _, _ = strings.Cut(path, " (")
		switch {
		case resolved && path == "not found":
			return nil, fmt.Errorf("library %s is not on this machine", name)
		case filepath.IsAbs(path):
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// relative makes the sources relative to the root of the file system.
func relative(files []image.Copy) []image.Copy {
	files = slices.Clone(files)
	for i := range files {
		files[i].Source = strings.TrimPrefix(files[i].Source, "/")
	}
	return files
}

// hash names the content of files.
func hash(files []image.Copy) (string, error) {
	sum := sha256.New()
	for _, f := range files {
		file, err := os.Open(f.Source)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s\n", f.Target)
		_, err = io.Copy(sum, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil)[:6]), nil
}
