package artifact

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Tool is a program and the package that has it.
type Tool struct{ Program, Package string }

// SystemPath is where programs are looked for: an unprivileged user's lacks sbin.
const SystemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// LookPath finds a program in the directories given first, then in Path.
func LookPath(name string, first ...string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	dirs := append(first, filepath.SplitList(SystemPath)...)
	for _, dir := range dirs {
		full := filepath.Join(dir, name)
		if info, err := os.Stat(full); err == nil && info.Mode()&0o111 != 0 && !info.IsDir() {
			return full, nil
		}
	}
	return "", fmt.Errorf("no program %q in %s", name, strings.Join(dirs, ":"))
}

// MissingTools lists the packages, each once, of the tools that are not there.
func MissingTools(tools []Tool) []string {
	var missing []string
	for _, tool := range tools {
		if _, err := LookPath(tool.Program); err != nil && !slices.Contains(missing, tool.Package) {
			missing = append(missing, tool.Package)
		}
	}
	return missing
}

// InstallPackages installs packages with apt-get; without it the error names them.
func InstallPackages(ctx context.Context, packages []string) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("missing on this machine, and there is no apt-get to install it: %s (Debian's package names); install it and try again", strings.Join(packages, ", "))
	}
	for _, args := range [][]string{{"update"}, append([]string{"install", "-y", "--no-install-recommends"}, packages...)} {
		cmd := exec.CommandContext(ctx, "apt-get", append([]string{"-q", "-o", "DPkg::Lock::Timeout=120"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, out[max(0, len(out)-2000):])
		}
	}
	return nil
}
