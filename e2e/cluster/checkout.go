package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const modulePath = "github.com/ordergrid/ordergrid"

// Checkout is the root of the working tree the caller stands in.
func Checkout() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.Contains("\n"+string(content), "\nmodule "+modulePath+"\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a checkout of %s; change into one", start, modulePath)
		}
	}
}
