// Package python has no Go code: it is the directory of the Python client, whose suite its test runs.
package python
