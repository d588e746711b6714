// Package chromium opens pages in a headless Chromium, for tests of rendered pages. It speaks the
// DevTools protocol over a pair of pipes: no port, no library.
package chromium

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// Find is the path of a Chromium on this machine, or why there is none.
func Find() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no Chromium on this machine (Debian: apt-get install chromium)")
}

// callTimeout bounds one call of the protocol.
const callTimeout = 60 * time.Second

// Browser is a running Chromium.
type Browser struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	dir  string
	done chan struct{} // closed when nothing more can be read

	mu      sync.Mutex
	last    int
	waiting map[int]chan reply
	pages   map[string]*Page // by session
	log     bytes.Buffer     // its output
}

type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Start starts a Chromium with an empty profile. Close ends it.
func Start(path string) (_ *Browser, err error) {
	dir, err := os.MkdirTemp("", "chromium-")
	if err != nil {
		return nil, err
	}
	b := &Browser{dir: dir, done: make(chan struct{}), waiting: map[int]chan reply{}, pages: map[string]*Page{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	// It reads calls from descriptor 3 and writes answers to 4.
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), ourOut.Close())
	}
	b.cmd = exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
		"--user-data-dir="+dir, "--remote-debugging-pipe", "about:blank")
	b.cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	b.cmd.Stderr, b.cmd.WaitDelay = &b.log, time.Second
	b.in = ourOut
	err = b.cmd.Start()
	closed := errors.Join(theirIn.Close(), theirOut.Close())
	if err = errors.Join(err, closed); err != nil {
		return nil, errors.Join(err, ourIn.Close(), ourOut.Close())
	}
	go b.read(ourIn)
	return b, nil
}

// Close ends the browser and removes its profile.
func (b *Browser) Close() error {
	_, callErr := b.call("", "Browser.close", nil)
	closeErr := b.in.Close()
	select {
	case <-b.done:
	case <-time.After(5 * time.Second):
		_ = b.cmd.Process.Kill() // it may have ended just now
	}
	waitErr := b.cmd.Wait()
	<-b.done
	if callErr != nil {
		return errors.Join(fmt.Errorf("%w; its output: %.2000s", callErr, b.log.String()), closeErr, waitErr, os.RemoveAll(b.dir))
	}
	return errors.Join(closeErr, os.RemoveAll(b.dir))
}

// message is an answer or an event.
type message struct {
	ID        int             `json:"id"`
	Method    string          `json:"method"`
	SessionID string          `json:"sessionId"`
	Params    json.RawMessage `json:"params"`
	reply
}

// read reads messages, each ended by a zero byte, until there are no more.
func (b *Browser) read(from io.ReadCloser) {
	defer close(b.done)
	defer func() { _ = from.Close() }() // nothing more is read
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		raw, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(raw[:len(raw)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		answer, page := b.waiting[m.ID], b.pages[m.SessionID]
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		switch {
		case m.ID != 0 && answer != nil:
			answer <- m.reply
		case m.Method != "" && page != nil:
			page.event(m.Method, m.Params)
		}
	}
}

func (b *Browser) call(session, method string, params any) (json.RawMessage, error) {
	answer := make(chan reply, 1)
	b.mu.Lock()
	b.last++
	id := b.last
	b.waiting[id] = answer
	b.mu.Unlock()
	request := map[string]any{"id": id, "method": method}
	if params != nil {
		request["params"] = params
	}
	if session != "" {
		request["sessionId"] = session
	}
	raw, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	_, err = b.in.Write(append(raw, 0))
	b.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("chromium: %s: %w", method, err)
	}
	select {
	case got := <-answer:
		if got.Error != nil {
			return nil, fmt.Errorf("chromium: %s: %s", method, got.Error.Message)
		}
		return got.Result, nil
	case <-b.done:
		return nil, fmt.Errorf("chromium: %s: the browser ended", method)
	case <-time.After(callTimeout):
		return nil, fmt.Errorf("chromium: %s: no answer within %v", method, callTimeout)
	}
}
