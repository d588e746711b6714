package chromium

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Page is one tab.
type Page struct {
	b       *Browser
	session string
	loaded  chan struct{}

	mu       sync.Mutex
	messages []string
	requests []string
}

// Look is the size, theme and medium of a page.
type Look struct {
	Width, Height int
	Dark          bool
	Print         bool // as on paper
}

// Open opens a tab.
func (b *Browser) Open() (*Page, error) {
	var target struct{ TargetID string }
	if err := b.ask("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	var attached struct{ SessionID string }
	if err := b.ask("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		return nil, err
	}
	p := &Page{b: b, session: attached.SessionID, loaded: make(chan struct{}, 1)}
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Log", "Network", "Audits"} {
		if err := p.ask(domain+".enable", nil, nil); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (b *Browser) ask(session, method string, params, into any) error {
	raw, err := b.call(session, method, params)
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

func (p *Page) ask(method string, params, into any) error {
	return p.b.ask(p.session, method, params, into)
}

// event records the page's console messages and requests.
func (p *Page) event(method string, params json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch method {
	case "Page.loadEventFired":
		select {
		case p.loaded <- struct{}{}:
		default:
		}
	case "Network.requestWillBeSent":
		var r struct{ Request struct{ URL string } }
		if json.Unmarshal(params, &r) == nil {
			p.requests = append(p.requests, r.Request.URL)
		}
	case "Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Audits.issueAdded":
		p.messages = append(p.messages, method+" "+string(params))
	}
}

// Go opens an address and waits until it is loaded.
func (p *Page) Go(url string) error {
	var r struct{ ErrorText string }
	if err := p.ask("Page.navigate", map[string]any{"url": url}, &r); err != nil {
		return err
	}
	if r.ErrorText != "" {
		return fmt.Errorf("chromium: %s: %s", url, r.ErrorText)
	}
	select {
	case <-p.loaded:
		return nil
	case <-p.b.done:
		return errors.New("chromium: the browser ended")
	case <-time.After(callTimeout):
		return fmt.Errorf("chromium: %s is not loaded after %v", url, callTimeout)
	}
}

// Messages are all errors, warnings and other messages of the page's console, and issues reported
// by the browser.
func (p *Page) Messages() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.messages)
}

// Requests are the addresses the page has asked for, its own included.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Look sets size, theme and medium.
func (p *Page) Look(l Look) error {
	theme, media := "light", "screen"
	if l.Dark {
		theme = "dark"
	}
	if l.Print {
		media = "print"
	}
	return errors.Join(
		p.ask("Emulation.setDeviceMetricsOverride", map[string]any{"width": l.Width, "height": l.Height, "deviceScaleFactor": 1, "mobile": false}, nil),
		p.ask("Emulation.setEmulatedMedia", map[string]any{"media": media, "features": []map[string]string{{"name": "prefers-color-scheme", "value": theme}}}, nil),
	)
}

// Eval is the value of an expression, or of the promise that it is.
func (p *Page) Eval(expression string, into any) error {
	var r struct {
		Result struct {
			Value json.RawMessage
		}
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	if err := p.ask("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r); err != nil {
		return err
	}
	if e := r.ExceptionDetails; e != nil {
		return fmt.Errorf("chromium: %s: %s %s", expression, e.Text, e.Exception.Description)
	}
	return json.Unmarshal(r.Result.Value, into)
}

// Screenshot is the whole page as PNG.
func (p *Page) Screenshot() ([]byte, error) {
	var r struct{ Data []byte }
	err := p.ask("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &r)
	return r.Data, err
}

// PDF is the page on paper, of the size its style sheet asks for.
func (p *Page) PDF() ([]byte, error) {
	var r struct{ Data []byte }
	err := p.ask("Page.printToPDF", map[string]any{"preferCSSPageSize": true, "printBackground": true}, &r)
	return r.Data, err
}
