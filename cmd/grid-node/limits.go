package main

const limitsHelp = "file with the limits of the grid in JSON, see docs/limits.md: a primary puts them in force by a log entry, and again when the file changes. Without it those that the log has stay in force; {} lifts them"
