package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// epoch is every time stamp in an image: the same inputs give the same digest.
var epoch = time.Unix(0, 0).UTC()

// layer is an image's only layer, kept in memory: at most a few binaries.
type layer struct {
	content []byte
	digest  string // sha256 of content, hexadecimal
}

// Write writes the image as a docker archive under the name ref, with the
// files of the Dockerfile taken from the directory context, and returns the
// image's id, which is "sha256:" and the digest of its configuration.
func Write(out io.Writer, d *Dockerfile, context, ref, architecture string) (id string, err error) {
	content, err := packLayer(d, context)
	if err != nil {
		return "", err
	}
	config, err := json.Marshal(configuration(d, content.digest, architecture))
	if err != nil {
		return "", err
	}
	configName := fmt.Sprintf("%x.json", sha256.Sum256(config))
	manifest, err := json.Marshal([]map[string]any{{
		"Config": configName, "RepoTags": []string{ref}, "Layers": []string{content.digest + "/layer.tar"},
	}})
	if err != nil {
		return "", err
	}
	archive := tar.NewWriter(out)
	files := []struct {
		name string
		data []byte
	}{{configName, config}, {content.digest + "/layer.tar", content.content}, {"manifest.json", manifest}}
	for _, file := range files {
		if err := addFile(archive, file.name, file.data, 0o644); err != nil {
			return "", err
		}
	}
	return "sha256:" + strings.TrimSuffix(configName, ".json"), archive.Close()
}

// WriteFile writes an archive as Write does, and leaves no half of one.
func WriteFile(out string, d *Dockerfile, context, ref, architecture string) (id string, err error) {
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return "", err
	}
	file, err := os.CreateTemp(filepath.Dir(out), ".image-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	id, err = Write(file, d, context, ref, architecture)
	if err := errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return "", err
	}
	return id, os.Rename(file.Name(), out)
}

// packLayer packs the copied files and the directories they need. They belong
// to root and are not writable by the image's user.
func packLayer(d *Dockerfile, context string) (*layer, error) {
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	made := map[string]bool{".": true}
	copies := slices.Clone(d.Copies)
	slices.SortFunc(copies, func(a, b Copy) int { return strings.Compare(a.Target, b.Target) })
	for _, c := range copies {
		target := strings.TrimPrefix(c.Target, "/")
		if err := addParents(archive, path.Dir(target), made); err != nil {
			return nil, err
		}
		data, err := os.ReadFile(filepath.Join(context, filepath.FromSlash(c.Source)))
		if err != nil {
			return nil, fmt.Errorf("COPY %s: %w", c.Source, err)
		}
		mode := int64(0o644)
		if info, err := os.Stat(filepath.Join(context, filepath.FromSlash(c.Source))); err == nil && info.Mode()&0o111 != 0 {
			mode = 0o755
		}
		if err := addFile(archive, target, data, mode); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return &layer{content: buffer.Bytes(), digest: fmt.Sprintf("%x", sha256.Sum256(buffer.Bytes()))}, nil
}

func addParents(archive *tar.Writer, dir string, made map[string]bool) error {
	if made[dir] {
		return nil
	}
	if err := addParents(archive, path.Dir(dir), made); err != nil {
		return err
	}
	made[dir] = true
	return archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: epoch, Format: tar.FormatUSTAR})
}

func addFile(archive *tar.Writer, name string, data []byte, mode int64) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: mode, ModTime: epoch, Format: tar.FormatUSTAR}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write(data)
	return err
}

// The parts of the image configuration we use; see the OCI image
// specification, config.md.
type imageConfig struct {
	Architecture string    `json:"architecture"`
	OS           string    `json:"os"`
	Created      string    `json:"created"`
	Config       runConfig `json:"config"`
	RootFS       rootFS    `json:"rootfs"`
}

type runConfig struct {
	User         string              `json:"User,omitempty"`
	ExposedPorts map[string]struct{} `json:"ExposedPorts,omitempty"`
	Env          []string            `json:"Env,omitempty"`
	Entrypoint   []string            `json:"Entrypoint,omitempty"`
	Cmd          []string            `json:"Cmd,omitempty"`
	WorkingDir   string              `json:"WorkingDir,omitempty"`
	Labels       map[string]string   `json:"Labels,omitempty"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

func configuration(d *Dockerfile, diffID, architecture string) imageConfig {
	ports := map[string]struct{}{}
	for _, port := range d.Expose {
		ports[port] = struct{}{}
	}
	return imageConfig{
		Architecture: architecture,
		OS:           "linux",
		Created:      epoch.Format(time.RFC3339),
		Config: runConfig{
			User: d.User, ExposedPorts: ports, Env: d.Env, Entrypoint: d.Entrypoint,
			Cmd: d.Cmd, WorkingDir: d.Workdir, Labels: d.Labels,
		},
		RootFS: rootFS{Type: "layers", DiffIDs: []string{"sha256:" + diffID}},
	}
}
