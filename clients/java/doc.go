// Package java has no Go code: it is the directory of the Java client, whose suite its test runs.
package java
