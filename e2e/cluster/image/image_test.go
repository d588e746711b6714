package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const good = `# comment
FROM scratch
LABEL title="a b" \
      licence=Apache-2.0
COPY app /bin/app
COPY notice /NOTICE
USER 65532:65532
WORKDIR /
ENV A=1 B="two words"
EXPOSE 7400 53/udp
ENTRYPOINT ["/bin/app"]
CMD ["serve", "--x"]
`

func TestParse(t *testing.T) {
	d, err := Parse(strings.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(d)
	want := `{"Copies":[{"Source":"app","Target":"/bin/app"},{"Source":"notice","Target":"/NOTICE"}],"User":"65532:65532","Workdir":"/",` +
		`"Entrypoint":["/bin/app"],"Cmd":["serve","--x"],"Env":["A=1","B=two words"],"Expose":["7400/tcp","53/udp"],` +
		`"Labels":{"licence":"Apache-2.0","title":"a b"}}`
	if string(got) != want {
		t.Errorf("parsed\n%s\nwant\n%s", got, want)
	}
}

func TestParseRefuses(t *testing.T) {
	tail := "\nCOPY a /a\nUSER 1\nENTRYPOINT [\"/a\"]\n"
	for _, c := range []struct{ file, says string }{
		{"", "no COPY"},
		{"COPY a /a", "before FROM"},
		{"FROM debian" + tail, "FROM scratch"},
		{"FROM scratch AS build" + tail, "FROM scratch"},
		{"FROM scratch\nFROM scratch" + tail, "one stage"},
		{"FROM scratch\nRUN make" + tail, "line 2: RUN"},
		{"FROM scratch\nADD a /a" + tail, "line 2: ADD"},
		{"FROM scratch\nHEALTHCHECK NONE" + tail, "not understood"},
		{"FROM scratch\nCOPY ../secret /a" + tail, "relative path inside"},
		{"FROM scratch\nCOPY a/../../x /a" + tail, "relative path inside"},
		{"FROM scratch\nCOPY /etc/shadow /a" + tail, "relative path inside"},
		{"FROM scratch\nCOPY * /a" + tail, "wildcards"},
		{"FROM scratch\nCOPY a a" + tail, "absolute path"},
		{"FROM scratch\nCOPY a /dir/" + tail, "absolute path"},
		{"FROM scratch\nCOPY --chown=1 a /a" + tail, "without options"},
		{"FROM scratch\nCOPY a b /a" + tail, "give one file"},
		{"FROM scratch\nLABEL a" + tail, "key=value"},
		{"FROM scratch\nLABEL a=\"x" + tail, "not closed"},
		{"FROM scratch\nENV A=$B" + tail, "not understood"},
		{"FROM scratch\nCOPY a /a\nUSER root\nENTRYPOINT [\"/a\"]", "give numbers"},
		{"FROM scratch\nCOPY a /a\nENTRYPOINT [\"/a\"]", "give numbers"},
		{"FROM scratch\nCOPY a /a\nUSER 1\nENTRYPOINT /a", "no shell"},
		{"FROM scratch\nCOPY a /a\nUSER 1", "no ENTRYPOINT"},
		{"FROM scratch\nCOPY a /a\nUSER 1\nENTRYPOINT [\"/b\"]", "not copied"},
	} {
		_, err := Parse(strings.NewReader(c.file))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: error is %v, want one saying %q", c.file, err, c.says)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(good)
	f.Add("FROM scratch\nLABEL a=\"b\\\n\" c=d\n")
	f.Fuzz(func(t *testing.T, file string) {
		d, err := Parse(strings.NewReader(file))
		if err != nil {
			return
		}
		for _, c := range d.Copies {
			if !filepath.IsLocal(c.Source) || !strings.HasPrefix(c.Target, "/") {
				t.Errorf("accepted COPY %q %q", c.Source, c.Target)
			}
		}
	})
}

// TestProductDockerfiles checks the images of this repository: each is a
// program of its name, run by an unprivileged user.
func TestProductDockerfiles(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	names, err := Names(root)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"grid-link", "grid-node", "grid-sink", "operator", "order-gateway", "order-probe"}; !slices.Equal(names, want) {
		t.Errorf("images are %v, want %v", names, want)
	}
	for _, name := range names {
		file, err := os.Open(filepath.Join(root, "images", name, "Dockerfile"))
		if err != nil {
			t.Fatal(err)
		}
		d, err := Parse(file)
		file.Close()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d.User != "65532:65532" || !slices.Equal(d.Entrypoint, []string{"/" + name}) || d.Labels["org.opencontainers.image.title"] != name {
			t.Errorf("%s: user %s, entrypoint %v, labels %v", name, d.User, d.Entrypoint, d.Labels)
		}
	}
}

// contextDir holds the files good copies, with time stamps of now.
func contextDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"app": 0o700, "notice": 0o600} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("content of "+name), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestWriteIsReproducible(t *testing.T) {
	var archives []string
	for range 2 {
		d, err := Parse(strings.NewReader(good))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if _, err := Write(&out, d, contextDir(t), "ordergrid.dev/app:dev", "amd64"); err != nil {
			t.Fatal(err)
		}
		archives = append(archives, out.String())
	}
	if archives[0] != archives[1] {
		t.Error("the same inputs gave two different archives")
	}
}

func TestArchive(t *testing.T) {
	d, err := Parse(strings.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	id, err := Write(&out, d, contextDir(t), "ordergrid.dev/app:dev", "amd64")
	if err != nil {
		t.Fatal(err)
	}
	files := untar(t, &out)
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"].data, &manifest); err != nil || len(manifest) != 1 {
		t.Fatalf("manifest %s: %v", files["manifest.json"].data, err)
	}
	m := manifest[0]
	if !slices.Equal(m.RepoTags, []string{"ordergrid.dev/app:dev"}) || "sha256:"+strings.TrimSuffix(m.Config, ".json") != id {
		t.Errorf("manifest is %+v, id %s", m, id)
	}
	wantConfig := `{"architecture":"amd64","os":"linux","created":"1970-01-01T00:00:00Z","config":{"User":"65532:65532",` +
		`"ExposedPorts":{"53/udp":{},"7400/tcp":{}},"Env":["A=1","B=two words"],"Entrypoint":["/bin/app"],"Cmd":["serve","--x"],` +
		`"WorkingDir":"/","Labels":{"licence":"Apache-2.0","title":"a b"}},"rootfs":{"type":"layers","diff_ids":["sha256:` +
		strings.TrimSuffix(m.Layers[0], "/layer.tar") + `"]}}`
	if got := string(files[m.Config].data); got != wantConfig {
		t.Errorf("config\n%s\nwant\n%s", got, wantConfig)
	}
	layer := untar(t, bytes.NewReader(files[m.Layers[0]].data))
	for name, want := range map[string]struct {
		mode int64
		data string
	}{"bin/": {0o755, ""}, "bin/app": {0o755, "content of app"}, "NOTICE": {0o644, "content of notice"}} {
		got, found := layer[name]
		if !found || got.mode != want.mode || string(got.data) != want.data {
			t.Errorf("layer has %s with mode %o and %q (%v), want %o and %q", name, got.mode, got.data, found, want.mode, want.data)
		}
	}
	if len(layer) != 3 {
		t.Errorf("layer has %d entries, want 3", len(layer))
	}
}

func TestWriteFileLeavesNoHalf(t *testing.T) {
	d, err := Parse(strings.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	_, err = WriteFile(filepath.Join(dir, "app.tar"), d, t.TempDir(), "ordergrid.dev/app:dev", "amd64")
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "COPY notice") {
		t.Errorf("a missing file of the context gave %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

type entry struct {
	mode int64
	data []byte
}

func untar(t *testing.T, r io.Reader) map[string]entry {
	t.Helper()
	files := map[string]entry{}
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.ModTime.Unix() != 0 || header.Uid != 0 || header.Gid != 0 {
			t.Errorf("%s: time %s, owner %d:%d", header.Name, header.ModTime, header.Uid, header.Gid)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = entry{header.Mode, data}
	}
}
