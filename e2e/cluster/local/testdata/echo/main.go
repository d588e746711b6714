// Command echo is what tests of clusters and faults run in pods: it reports where
// it runs and what it sees, and fetches from elsewhere on request.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	http.HandleFunc("/name", func(w http.ResponseWriter, _ *http.Request) {
		name, _ := os.Hostname()
		fmt.Fprint(w, name)
	})
	http.HandleFunc("/fetch", func(w http.ResponseWriter, r *http.Request) {
		// Each time anew: a kept connection would show where a name led before.
		client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Get(r.URL.Query().Get("url"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer response.Body.Close()
		_, _ = io.Copy(w, response.Body)
	})
	http.HandleFunc("/clock", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, time.Now().UnixNano()) })
	http.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		// Not http.ServeFile: the kernel's files have size 0.
		content, err := os.ReadFile(r.URL.Query().Get("path"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = w.Write(content)
	})
	http.HandleFunc("/megabyte", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) })
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() { <-stop; os.Exit(0) }()
	fmt.Fprintln(os.Stderr, http.ListenAndServe(":8080", nil))
	os.Exit(1)
}
